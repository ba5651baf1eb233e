// Compares a run that was trained again with the recorded run of the same options.
#pragma once

#include <filesystem>
#include <string>

#include "bench/compare/compare_options.h"
#include "bench/compare/variant.h"

namespace syncopate::bench {

// Returns why a repeated run may end with other weights, such as "asynchronous, real clock"; "" if
// the weights must be equal.
std::string why_not_comparable(const RunSpec& run, Clock clock);

// Returns the hash of the weights at the end of the run in this file; "" if there is none.
std::string weights_in(const std::filesystem::path& file);

// Returns how the repeated run differs from the recorded one, such as "expected weights 12ab, found
// 34cd"; "" if it does not. Both are files of runs. Compares the weights; under the virtual clock
// also all times and evaluations.
std::string difference_of_repeated(const std::filesystem::path& recorded,
                                   const std::filesystem::path& repeated, Clock clock);

// Returns how the devices of the two runs differ, such as "the recorded run used cpu, x86-64-v4,
// 1 lane, oneDNN 3.1.0, this run cpu, x86-64-v3, 1 lane, oneDNN 3.1.0"; "" if they do not.
std::string difference_of_devices(const std::filesystem::path& recorded,
                                  const std::filesystem::path& repeated);

}  // namespace syncopate::bench
