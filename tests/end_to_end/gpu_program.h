// The program on GPUs: on real ones, or with an emulated module in front of the real one, as the
// test is linked.
#pragma once

#include <string>
#include <vector>

#include "tests/end_to_end/run_program.h"

namespace syncopate::test {

bool is_emulated();

// emulation: variables that the emulated module heeds (emulated_module.cc).
std::vector<std::string> gpu_program(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& emulation = {});
ProgramResult run_on_gpus(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& emulation = {});

// "" where there are so many; else why not. Throws where the program cannot say.
std::string why_fewer_gpus_than(std::size_t wanted);

}  // namespace syncopate::test
