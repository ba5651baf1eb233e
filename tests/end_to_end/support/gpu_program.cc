#include "tests/end_to_end/support/gpu_program.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "tests/support/as_words.h"

namespace syncopate::test {

bool is_emulated() { return !std::string_view(SYNCOPATE_EMULATED_MODULE).empty(); }

std::vector<std::string> gpu_program(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& emulation) {
  std::vector<std::string> command;
  if (is_emulated()) {
    // The loader finds the emulated module first, because LD_LIBRARY_PATH begins with its folder.
    // CUDA_VISIBLE_DEVICES is unset because it lists real GPUs.
    command = as_words("/usr/bin/env -u CUDA_VISIBLE_DEVICES",
                       std::string("LD_LIBRARY_PATH=") + SYNCOPATE_EMULATED_MODULE);
    command = command + emulation;
  }
  return command + syncopate_command(arguments);
}

ProgramResult run_on_gpus(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& emulation) {
  return run_program(gpu_program(arguments, emulation));
}

std::string why_fewer_gpus_than(std::size_t wanted) {
  const ProgramResult info = run_on_gpus({"info", "--json"});
  if (info.exit_code != 0) {
    throw std::runtime_error("info ended with " + std::to_string(info.exit_code) + ": " + info.err);
  }
  const auto facts = nlohmann::json::parse(info.out);
  if (facts.at("devices").size() > wanted) return "";  // the list of devices contains the CPU too
  return std::to_string(wanted) + " are wanted; here: " + facts.at("cuda").get<std::string>();
}

}  // namespace syncopate::test
