// Converts the number of a pixel, counted through all samples, to its place in the map, and back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace syncopate::cuda {

struct Pixel {
  std::int64_t n = 0;
  int row = 0, column = 0;
};

__device__ inline Pixel pixel_of(std::int64_t index, int height, int width) {
  const std::int64_t line = index / width;
  const std::int64_t n = line / height;
  return {n, static_cast<int>(line - n * height), static_cast<int>(index - line * width)};
}

// Returns the index of a pixel, counted through the whole map.
__device__ inline std::int64_t index_of(std::int64_t n, int row, int column, int height,
                                        int width) {
  return (n * height + row) * width + column;
}

}  // namespace syncopate::cuda
