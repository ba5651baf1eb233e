// Which algorithm a convolution runs with: a pure function of its shape and pass, looked up in a
// checked-in table, so that runs repeat. A training run never measures; `syncopate-bench step
// --retune` writes the table.
#pragma once

#include <cstdint>
#include <span>

namespace syncopate {

enum class ConvAlgorithm : std::uint8_t { kDirect, kWinograd };
enum class ConvPass : std::uint8_t { kForward, kBackwardData, kBackwardWeights };

// One lane's convolution: n samples of [h, w, c] to k channels.
struct ConvProblem {
  std::int64_t n;
  std::int64_t c;
  std::int64_t k;
  std::int64_t h;
  std::int64_t w;
  int kernel_h;
  int kernel_w;
  int stride;
  int pad;
};

// A row holds for the 3x3 convolutions with stride 1 and padding 1 from c to k channels, on AVX-512
// and oneDNN 2.6.3, whatever the batch: the choice must not change with the number of lanes.
struct AlgorithmRow {
  std::int64_t c;
  std::int64_t k;
  std::int64_t h;  // of the square map
  ConvAlgorithm forward;
  ConvAlgorithm backward_data;
  ConvAlgorithm backward_weights;
};
std::span<const AlgorithmRow> algorithm_table() noexcept;

// kDirect for whatever the table does not list.
ConvAlgorithm choose_algorithm(const ConvProblem& problem, ConvPass pass) noexcept;

}  // namespace syncopate
