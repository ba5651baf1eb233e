// Provides a map to be normalised, its parameters, and the results that double precision gives.
#pragma once

#include <algorithm>
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {

inline constexpr float kEpsilon = 1e-3F;  // so that one row's deviation is not tiny
inline constexpr float kMomentum = 0.25F;

inline BatchNormShape batch_norm_shape(const RowShape& shape, bool relu) {
  return {shape.rows, shape.channels, kEpsilon, kMomentum, relu};
}

inline BatchNormOp operation() { return {.epsilon = kEpsilon, .momentum = kMomentum}; }

inline reference::Map map_of(const RowShape& shape, const Values& values) {
  reference::Map map = reference::make_map(shape.rows, {shape.channels});
  map.values = values;
  return map;
}

// Returns whether the kernels can use a mask for maps of T that are off by `offset` elements.
template <typename T>
bool can_mask(const RowShape& rows, std::int64_t offset) {
  return offset == 0 || rows.channels * sizeof(T) % 16 != 0;
}

// Returns the mask of a map, as batch_norm_apply() writes it: which elements are above 0.
template <typename T>
Values mask_of(const RowShape& rows, const Values& map) {
  Values mask(static_cast<std::size_t>(batch_norm_mask_bytes<T>(batch_norm_shape(rows, true))));
  const std::size_t pack = mask.empty() ? 1 : map.size() / mask.size();
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] > 0.0) mask[i / pack] += static_cast<double>(1U << i % pack);
  }
  return mask;
}

// Draws a map whose mean is large compared with its deviation, as after a convolution with a bias.
template <typename T>
struct BatchNormCase {
  explicit BatchNormCase(const RowShape& rows)
      : shape(rows),
        x(draw<T>(rows.count(), 1, 3.0, 1.0)),
        gamma(draw<float>(rows.channels, 2, 1.0, 0.5)),
        beta(draw<float>(rows.channels, 3)),
        shift(draw<float>(rows.channels, 4, 3.0, 0.5)),
        moments(reference::batch_moments(map_of(rows, x))) {
    for (const double variance : moments.variance) {
      inverse.push_back(1.0 / std::sqrt(variance + static_cast<double>(kEpsilon)));
    }
  }
  // Returns, in double precision, what the kernel batch_norm_sums() promises: per channel the sums
  // of x - shift and of its square, then the number of rows.
  Values sums() const {
    const auto channels = static_cast<std::size_t>(shape.channels);
    Values result(2 * channels + 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double shifted = x[i] - shift[i % channels];
      result[i % channels] += shifted;
      result[channels + i % channels] += shifted * shifted;
    }
    result[2 * channels] = static_cast<double>(shape.rows);
    return result;
  }
  double largest_inverse() const { return *std::max_element(inverse.begin(), inverse.end()); }

  RowShape shape;
  Values x, gamma, beta, shift;
  reference::Moments moments;
  Values inverse;
};

}  // namespace syncopate::cuda
