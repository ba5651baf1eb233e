// Computes the mean and the standard deviation of samples. Networks subtract the mean and divide by
// the deviation.
#pragma once

#include <vector>

#include "worker/input/dataset.h"

namespace syncopate {

// Mean and deviation in the units of InputOp: u8 values are divided by 255, u16 values by 65535;
// f32 values are used unchanged.
struct ValueStatistics {
  std::vector<float> mean;
  std::vector<float> stddev;  // 1 for a channel or feature with equal values
};

// Computes the statistics of each channel of images [H, W, C]. For vectors [F], computes the
// statistics of each feature if `by_feature`, else of all features together. Reads at most 256 MB
// of evenly spaced samples in their order, so the result depends on the samples alone. Throws what
// the data set throws.
ValueStatistics value_statistics(const Dataset& dataset, bool by_feature);

// Returns statistics that leave f32 samples of this shape unchanged.
ValueStatistics no_normalisation(const Shape& sample_shape);

}  // namespace syncopate
