// A data set in memory or in a mapped file: samples of one shape, back to back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/input/dataset.h"

namespace syncopate {

// Pixels [N * H * W * C], labels [N] and the owner of their memory.
struct SampleBlock {
  std::span<const std::uint8_t> pixels;
  std::span<const std::uint8_t> labels;
  std::shared_ptr<const void> memory;
};

// Makes a block that owns the vectors.
SampleBlock make_sample_block(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels);

// sample_shape [H, W, C]. The caller has checked the labels against num_classes.
std::unique_ptr<Dataset> make_memory_dataset(SampleBlock block, Shape sample_shape,
                                             int num_classes);

}  // namespace syncopate
