// The mean and deviation of samples, which networks subtract and divide by.
#pragma once

#include <vector>

#include "worker/input/dataset.h"

namespace syncopate {

// In units of InputOp: of u8 values / 255, of u16 values / 65535, of f32 values.
struct ValueStatistics {
  std::vector<float> mean;
  std::vector<float> stddev;  // 1 where all values are equal
};

// Computes the statistics of each channel of images [H, W, C]. For vectors [F], computes the
// statistics of each feature if `by_feature`, else of all features together. Reads at most 256 MB
// of samples, evenly spaced, in their order: a function of the samples alone. Throws what the data
// set throws.
ValueStatistics value_statistics(const Dataset& dataset, bool by_feature);

// Returns statistics that leave f32 samples of this shape unchanged.
ValueStatistics no_normalisation(const Shape& sample_shape);

}  // namespace syncopate
