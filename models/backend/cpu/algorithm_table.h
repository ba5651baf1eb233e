// Chooses the algorithm of a convolution from a table in the source tree. The choice depends only
// on the shape and the pass, so results do not vary between runs. `syncopate-bench step --retune`
// measures convolutions and writes the table; a training run never measures.
#pragma once

#include <cstdint>
#include <span>

#include "models/graph/padding.h"

namespace syncopate {

enum class ConvAlgorithm : std::uint8_t { kDirect, kWinograd };
enum class ConvPass : std::uint8_t { kForward, kBackwardData, kBackwardWeights };

// The convolution of one lane's part of a batch: n samples of shape [h, w, c], with k output
// channels.
struct ConvProblem {
  std::int64_t n;
  std::int64_t c;
  std::int64_t k;
  std::int64_t h;
  std::int64_t w;
  int kernel_h;
  int kernel_w;
  int stride;
  Padding pad;
  std::int64_t groups = 1;  // number of groups, after joining (joined_groups.h)
};

// The fastest algorithms of a 3x3 convolution with stride 1 and padding 1 from c to k channels, on
// AVX-512 with oneDNN 2.6.3. A row of the table is valid for every batch size, because the choice
// must not change with the number of lanes.
struct AlgorithmRow {
  std::int64_t c;
  std::int64_t k;
  std::int64_t h;  // height and width of the square map, in pixels
  ConvAlgorithm forward;
  ConvAlgorithm backward_data;
  ConvAlgorithm backward_weights;
};
std::span<const AlgorithmRow> algorithm_table() noexcept;

// Returns the algorithm that the table of AlgorithmRows has for a convolution; kDirect if the table
// has no row for the convolution.
ConvAlgorithm choose_algorithm(const ConvProblem& problem, ConvPass pass) noexcept;

// Measures a convolution on one thread and returns the time in seconds of the fastest of `repeats`
// executions. Returns infinity when oneDNN has no kernel for the convolution with this algorithm.
// Throws DeviceError, OutOfMemoryError.
double time_convolution(const ConvProblem& problem, ConvPass pass, ConvAlgorithm algorithm,
                        int repeats);

}  // namespace syncopate
