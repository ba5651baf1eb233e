// Selects the training samples that become validation samples (--split).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate {

// Returns the fraction that a value of --split gives: 0.1 for "val=0.1". Throws UsageError unless
// the fraction is above 0 and below 1.
double parse_split(const std::string& text);

// The indices of the samples in two parts of a data set, each in ascending order.
struct HeldOutSamples {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> validation;
};

// Selects validation samples: the last samples of a permutation that depends on the seed only. The
// number of validation samples is `samples` times the fraction that `text`, a value of --split,
// gives. Throws UsageError naming --split if a part would be empty.
HeldOutSamples hold_out(std::int64_t samples, const std::string& text, std::uint64_t seed);

}  // namespace syncopate
