// The tensors of a sample of a data set, and the memory into which a sample is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// One tensor of a sample. The shape has no batch dimension: [H, W, C] for an image, [F] for
// features, [] for a number.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;

  std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(num_elements(shape)) * syncopate::size_bytes(dtype);
  }
};

struct SampleSpec {
  std::vector<TensorSpec> inputs;  // at least one; u8, u16, f32 or i64
  TensorSpec target;
  int num_classes = 0;  // number of classes if the target is i32; 0 if it is numbers (f32)
  // The smallest and the largest number in the f32 targets of the data set.
  float least_target = 0.0F;
  float largest_target = 0.0F;
};

// Whether a shape of three extents is probably [C, H, W] and not [H, W, C]: the last two extents
// are equal and differ from the first, or both are larger than the first. Always false if one of
// the last two extents is 4 or less, because a small last extent is the number of channels.
inline bool looks_channels_first(const Shape& shape) {
  if (shape.size() != 3 || shape[1] <= 4 || shape[2] <= 4) return false;
  return shape[1] == shape[2] ? shape[0] != shape[1] : shape[0] < std::min(shape[1], shape[2]);
}

// Returns the spec of samples with one input "x" and a target "y", which is a class, i32 [].
inline SampleSpec classified_samples(Shape shape, int num_classes, DType dtype = DType::kU8) {
  return {.inputs = {{"x", dtype, std::move(shape)}},
          .target = {"y", DType::kI32, {}},
          .num_classes = num_classes};
}

// Returns the spec of samples with one input "x" [H, W, C] and a target "y", which is a label map,
// i32 [H, W]: the class of each pixel, or kUncounted (models/graph/graph.h).
inline SampleSpec mapped_samples(Shape shape, int num_classes, DType dtype = DType::kU8) {
  Shape map = {shape[0], shape[1]};
  return {.inputs = {{"x", dtype, std::move(shape)}},
          .target = {"y", DType::kI32, std::move(map)},
          .num_classes = num_classes};
}

// The memory of one sample: one span per entry of SampleSpec::inputs, and a span for the target.
struct SampleView {
  std::span<const std::span<std::byte>> inputs;
  std::span<std::byte> target;
};

}  // namespace syncopate
