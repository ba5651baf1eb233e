// Runs the program under test on real GPUs, or with an emulated CUDA module in place of the real
// one, depending on how the test is linked.
#pragma once

#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"

namespace syncopate::test {

bool is_emulated();

// Runs the program; `emulation` has variables that configure the emulated module
// (emulated_module.cc).
std::vector<std::string> gpu_program(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& emulation = {});
ProgramResult run_on_gpus(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& emulation = {});

// Returns "" if the machine has the wanted number of GPUs, and the reason if not. Throws
// std::runtime_error if `info` fails.
std::string why_fewer_gpus_than(std::size_t wanted);

}  // namespace syncopate::test
