// Reads one sample of one u8 input without augmentation, for tests of data sets.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "worker/input/dataset.h"

namespace syncopate {

// Fills the pixels of a sample; returns its label.
inline std::int32_t read_sample(const Dataset& dataset, std::int64_t index,
                                std::span<std::uint8_t> pixels, const Draw& draw = {}) {
  std::int32_t label = -1;
  const std::array inputs = {std::as_writable_bytes(pixels)};
  dataset.read(index, draw, {inputs, std::as_writable_bytes(std::span(&label, 1))});
  return label;
}

inline const Shape& sample_shape(const Dataset& dataset) { return dataset.spec().inputs[0].shape; }

}  // namespace syncopate
