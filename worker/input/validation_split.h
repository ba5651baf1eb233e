// --split: validation samples that are taken out of the training samples of a data set that has no
// validation split.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/input/dataset.h"

namespace syncopate {

// Returns the fraction of a value of --split, "val=0.1". Throws UsageError unless it is above 0 and
// below 1.
double parse_split(const std::string& text);

// Moves a fraction of the training samples to data.validation: the last samples of a permutation
// that is a function of the seed. Both parts keep the order of the data set. Throws UsageError
// naming --split when the data have a validation split, or a part would be empty.
void split_validation(DataSplits& data, const std::string& text, std::uint64_t seed);

// Returns some of the samples of another data set, which they keep alive. indices: each below
// whole->size().
std::unique_ptr<Dataset> subset_of(std::shared_ptr<const Dataset> whole,
                                   std::vector<std::uint32_t> indices);

}  // namespace syncopate
