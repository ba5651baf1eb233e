#include "bench/step/retune.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <variant>

#include "models/base/errors.h"
#include "models/base/isa.h"

namespace syncopate::bench {
namespace {

// The least speed-up of Winograd over direct convolution that justifies its different rounding.
constexpr double kLeastGain = 1.05;
constexpr int kRepeats = 30;

bool same_shape(const ConvProblem& a, const ConvProblem& b) {
  return a.c == b.c && a.k == b.k && a.h == b.h;
}

// Returns the time of direct convolution divided by the time of Winograd, the smaller ratio of two
// batch sizes. The choice must not depend on the number of lanes.
double winograd_gain(ConvProblem problem, ConvPass pass) {
  double gain = 1e9;
  for (const std::int64_t n : {32, 64}) {
    problem.n = n;
    const double direct = time_convolution(problem, pass, ConvAlgorithm::kDirect, kRepeats);
    const double winograd = time_convolution(problem, pass, ConvAlgorithm::kWinograd, kRepeats);
    gain = std::min(gain, direct / winograd);
  }
  return gain;
}

std::string_view word(ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kWinograd ? "kWinograd" : "kDirect";
}

}  // namespace

std::vector<ConvProblem> tunable_convolutions(const std::vector<Graph>& graphs) {
  std::vector<ConvProblem> problems;
  for (const Graph& graph : graphs) {
    for (const Node& node : graph.nodes) {
      const auto* op = std::get_if<Conv2dOp>(&node.operation);
      if (op == nullptr || op->kernel_h != 3 || op->kernel_w != 3 || op->stride != 1 ||
          op->pad != 1 || op->groups != 1)
        continue;
      const Shape& in = graph.nodes[static_cast<std::size_t>(node.inputs[0])].shape;
      const ConvProblem problem = {.n = 0,
                                   .c = in[2],
                                   .k = node.shape[2],
                                   .h = in[0],
                                   .w = in[1],
                                   .kernel_h = 3,
                                   .kernel_w = 3,
                                   .stride = 1,
                                   .pad = 1};
      const bool known = std::ranges::any_of(
          problems, [&](const ConvProblem& p) { return same_shape(p, problem); });
      if (in[0] == in[1] && in[2] >= 16 && !known) problems.push_back(problem);
    }
  }
  return problems;
}

std::string format_rows(const std::vector<AlgorithmRow>& rows) {
  std::string text =
      "// Written by `syncopate-bench step --retune`: c, k, h = w, then forward, backward data,\n"
      "// backward weights.\n";
  for (const AlgorithmRow& row : rows) {
    const bool direct = row.forward == ConvAlgorithm::kDirect &&
                        row.backward_data == ConvAlgorithm::kDirect &&
                        row.backward_weights == ConvAlgorithm::kDirect;
    if (direct) continue;
    text += fmt::format("{{{}, {}, {}, {}, {}, {}}},\n", row.c, row.k, row.h, word(row.forward),
                        word(row.backward_data), word(row.backward_weights));
  }
  return text;
}

void retune(const std::vector<Graph>& graphs, const std::filesystem::path& file) {
  if (detect_isa() != Isa::kV4) {
    throw UnavailableError(
        "--retune: this machine has no AVX-512, and oneDNN no Winograd kernels without it");
  }
  fmt::print("{:>5} {:>5} {:>5}   {:>8} {:>14} {:>17}\n", "c", "k", "h", "forward", "backward data",
             "backward weights");
  std::vector<AlgorithmRow> rows;
  for (const ConvProblem& problem : tunable_convolutions(graphs)) {
    const double forward = winograd_gain(problem, ConvPass::kForward);
    const double data = winograd_gain(problem, ConvPass::kBackwardData);
    const double weights = winograd_gain(problem, ConvPass::kBackwardWeights);
    fmt::print("{:>5} {:>5} {:>5}   {:>7.2f}x {:>13.2f}x {:>16.2f}x\n", problem.c, problem.k,
               problem.h, forward, data, weights);
    const auto choose = [](double gain) {
      return gain > kLeastGain ? ConvAlgorithm::kWinograd : ConvAlgorithm::kDirect;
    };
    rows.push_back(
        {problem.c, problem.k, problem.h, choose(forward), choose(data), choose(weights)});
  }
  const std::filesystem::path temporary = file.string() + ".tmp";
  std::ofstream out(temporary);
  out << format_rows(rows);
  out.close();
  std::error_code failure;
  if (out) std::filesystem::rename(temporary, file, failure);
  if (!out || failure) {
    throw FileError("--retune " + file.string() +
                    ": cannot be written; name a file in a folder that can");
  }
  fmt::print("wrote {}; rebuild to use it\n", file.string());
}

}  // namespace syncopate::bench
