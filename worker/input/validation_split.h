// --split: which training samples become validation samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate {

// Returns the fraction of a value of --split, "val=0.1". Throws UsageError unless it is above 0 and
// below 1.
double parse_split(const std::string& text);

// The indices of the samples in two parts of a data set, each in ascending order.
struct HeldOutSamples {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> validation;
};

// Holds out the fraction that `text`, a value of --split, names: the last samples of a permutation
// that is a function of the seed. Throws UsageError naming --split when a part would be empty.
HeldOutSamples hold_out(std::int64_t samples, const std::string& text, std::uint64_t seed);

}  // namespace syncopate
