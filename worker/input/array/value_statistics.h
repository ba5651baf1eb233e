// Computes the mean and the standard deviation of samples, which networks subtract and divide by,
// and finds values that are not finite.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "worker/input/dataset.h"

namespace syncopate {

// Sets mean and deviation of the data set from its training samples, in the units of InputOp: u8
// values are divided by 255, u16 values by 65535. Computes them for each channel of images
// [H, W, C], and for all features of vectors [F] together. The deviation is 1 where all values are
// equal. Leaves f32 samples unchanged: their values have a scale that their maker chose. Reads at
// most 256 MB of evenly spaced samples in their order, so the result depends on the samples alone.
// Throws what the data set throws.
void set_value_statistics(DataSplits& splits);

// Does the same for f32 vectors [F], for each feature.
void set_feature_statistics(DataSplits& splits);

struct BadValue {
  std::size_t place = 0;  // the number of the value in the sample
  float value = 0.0F;
};
// Returns the first value of an f32 sample that is not finite; nullopt if all values are finite or
// of another type. Data sets check this when they read a sample, because a loss that is not finite
// does not tell which sample caused it.
std::optional<BadValue> find_bad_value(const TensorSpec& spec, std::span<const std::byte> sample);

}  // namespace syncopate
