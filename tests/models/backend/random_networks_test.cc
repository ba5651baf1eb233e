// Compares the CPU backend with the interpreter for networks that are drawn at random: users'
// networks connect operations in ways that no network of the zoo does.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "tests/models/backend/backend_case.h"

namespace syncopate {
namespace {

constexpr int kFeatures = 6;

// Draws one network. Every node is read, and every operation occurs in many of the networks.
class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed), build_("random" + std::to_string(seed)) {}

  Graph draw() {
    constexpr std::array kDTypes = {DType::kU8, DType::kU16, DType::kF32};
    const Shape shape = {between(5, 12), between(5, 12), between(1, 4)};
    const auto channels = static_cast<std::size_t>(shape.back());
    add(build_.input(shape, {.dtype = kDTypes[below(3)],
                             .mean = std::vector<float>(channels, 0.5F),
                             .stddev = std::vector<float>(channels, 0.25F)}));
    for (int i = between(1, 9); i > 0; --i) add_node();
    NodeId sum = -1;
    for (NodeId node = 0; node < static_cast<NodeId>(is_read_.size()); ++node) {
      if (is_read_[static_cast<std::size_t>(node)]) continue;
      const NodeId features = to_features(node);
      sum = sum < 0 ? features : build_.add(sum, features);
    }
    if (below(2) == 0) sum = build_.relu(sum);
    constexpr std::array kLosses = {LossKind::kSoftmaxCrossEntropy, LossKind::kBinaryCrossEntropy,
                                    LossKind::kMeanSquaredError};
    return build_.finish(build_.dense(sum, "fc", 4), {.kind = kLosses[below(3)]});
  }

 private:
  std::size_t below(int limit) {
    return std::uniform_int_distribution<std::size_t>(0,
                                                      static_cast<std::size_t>(limit) - 1)(random_);
  }
  int between(int least, int most) { return least + static_cast<int>(below(most - least + 1)); }
  std::string next_name() { return "n" + std::to_string(is_read_.size()); }
  NodeId add(NodeId node) {
    is_read_.push_back(false);
    return node;
  }

  NodeId read(NodeId node) {
    is_read_[static_cast<std::size_t>(node)] = true;
    return node;
  }
  // Adds a node that the next one reads.
  NodeId inner(NodeId node) { return read(add(node)); }
  bool is_map(NodeId node) const { return build_.shape(node).size() == 3; }

  // Reads a node; mostly the last one, which makes networks deep.
  NodeId any() {
    const auto last = static_cast<int>(is_read_.size()) - 1;
    return below(3) == 0 ? static_cast<NodeId>(below(last + 1)) : last;
  }

  Activation any_activation() {
    constexpr std::array kAll = {
        Activation::kSigmoid,   Activation::kTanh,  Activation::kGelu,       Activation::kSilu,
        Activation::kHardSwish, Activation::kRelu6, Activation::kHardSigmoid};
    return kAll[below(static_cast<int>(kAll.size()))];
  }

  // Returns any node of this shape, where -1 stands for any number of channels.
  NodeId alike(const Shape& wanted) {
    std::vector<NodeId> found;
    for (NodeId node = 0; node < static_cast<NodeId>(is_read_.size()); ++node) {
      const Shape& shape = build_.shape(node);
      const bool is_alike = shape.size() == 3 && shape[0] == wanted[0] && shape[1] == wanted[1] &&
                            (wanted[2] < 0 || shape[2] == wanted[2]);
      if (is_alike) found.push_back(node);
    }
    return found[below(static_cast<int>(found.size()))];
  }

  NodeId to_features(NodeId node) {
    const std::string name = "out" + std::to_string(node);
    if (!is_map(node)) return build_.dense(node, name, kFeatures);
    const NodeId vector = below(2) == 0 ? build_.flatten(node) : build_.global_average_pool(node);
    return build_.dense(vector, name, kFeatures);
  }

  // A layer norm of few channels turns rounding into large gradients where they are almost equal.
  NodeId draw_layer_norm(NodeId x) {
    if (build_.shape(x).back() < 3) return build_.relu(read(x));
    return build_.layer_norm(read(x), next_name(), {.epsilon = 0.1F});
  }

  NodeId draw_map_node(NodeId x) {
    const Shape shape = build_.shape(x);
    const auto smallest = static_cast<int>(std::min(shape[0], shape[1]));
    switch (below(23)) {
      case 0:
      case 1: {
        Conv2dOp conv{.kernel_h = between(1, std::min(3, smallest)),
                      .kernel_w = between(1, std::min(3, smallest)),
                      .stride = between(1, 2),
                      .bias = below(2) == 0};
        const int rows = conv.kernel_h > 1 ? 1 : 0;
        const int columns = conv.kernel_w > 1 ? 1 : 0;
        conv.pad = {between(0, rows), between(0, columns), between(0, rows), between(0, columns)};
        int channels = below(4) == 0 ? between(16, 36) : between(1, 9);
        const auto in = static_cast<int>(shape[2]);
        if (below(3) == 0) {
          conv.groups = below(2) == 0 || in % 2 != 0 ? in : in / 2;
          channels = conv.groups * between(1, 2);
        }
        return build_.conv2d(read(x), next_name(), channels, conv);
      }
      case 14: {
        if (smallest > 16) return build_.relu(read(x));
        const int kernel = between(1, 3);
        const int pad = between(0, kernel - 1) / 2;
        return build_.conv_transpose2d(read(x), next_name(), between(1, 20),
                                       {.kernel_h = kernel,
                                        .kernel_w = kernel,
                                        .stride = between(1, 2),
                                        .pad = {pad, 0, 0, pad},
                                        .bias = below(2) == 0});
      }
      case 2:
        // A batch norm of constant channels turns rounding into large gradients.
        if (has_norm_) return build_.relu(read(x));
        has_norm_ = true;
        return build_.batch_norm(read(x), next_name());
      case 17:
        if (smallest > 16) return build_.relu(read(x));
        return build_.upsample2d(
            read(x), {.scale = between(2, 3),
                      .mode = below(2) == 0 ? Interpolation::kNearest : Interpolation::kBilinear});
      case 22: {
        const int first = between(0, static_cast<int>(shape[2]) - 1);
        return build_.slice(read(x), first, between(1, static_cast<int>(shape[2]) - first));
      }
      case 18:
        return build_.transpose(read(x), std::array{std::array{1, 0, 2}, std::array{2, 0, 1},
                                                    std::array{0, 2, 1}}[below(3)]);
      case 19:
        return build_.reshape(read(x), {shape[1], shape[0] * shape[2], 1});
      case 20: {
        const NodeId rows = inner(build_.reshape(read(x), {1, shape[0] * shape[1], shape[2]}));
        return build_.multiply(x, inner(build_.reduce_mean(rows, std::array{1})));
      }
      case 21: {
        const NodeId columns = inner(build_.transpose(read(x), {0, 2, 1}));
        const NodeId products = inner(build_.linear(inner(build_.matmul(x, columns)), 0.25F));
        return build_.matmul(inner(build_.softmax(products)), x);
      }
      case 16:
        return build_.dropout(read(x), next_name(), {.rate = 0.25F});
      case 15:
        return draw_layer_norm(x);
      case 3:
        if (smallest < 2) return build_.relu(read(x));
        return build_.max_pool(read(x), {.window = 2, .stride = between(1, 2), .pad = 0});
      case 4:
        has_norm_ = true;  // the channels that it appends are constant
        return build_.shortcut(read(x), between(1, 2), static_cast<int>(shape[2]) + between(0, 3));
      case 5:
        return build_.add(read(x), read(alike(shape)));
      case 9:
      case 10:
        return build_.activation(read(x), any_activation());
      case 11:
        if (smallest < 3) return build_.relu(read(x));
        return build_.average_pool(read(x), {.window = 3, .stride = between(1, 2), .pad = 1});
      case 12:
        return build_.multiply(read(x), read(alike(shape)));
      case 13:
        return build_.concat({read(x), read(alike({shape[0], shape[1], -1}))});
      case 6:
        return below(2) == 0 ? build_.flatten(read(x)) : build_.global_average_pool(read(x));
      default:
        return build_.relu(read(x));
    }
  }

  void add_node() {
    const NodeId x = any();
    if (is_map(x)) {
      add(draw_map_node(x));
    } else if (below(4) == 0) {
      add(build_.relu(read(x)));
    } else if (below(3) == 0) {
      add(build_.activation(read(x), any_activation()));
    } else if (below(5) == 0) {
      add(build_.dropout(read(x), next_name()));
    } else if (below(4) == 0) {
      add(draw_layer_norm(x));
    } else if (below(3) == 0) {
      add(build_.multiply(x, read(x)));
    } else if (below(3) == 0) {
      try {
        add(build_.concat({x, read(x)}));
      } catch (const ShapeError&) {  // x is a flattened map
        add(build_.relu(x));
      }
    } else {
      add(build_.dense(read(x), next_name(), between(1, 20)));
    }
  }

  std::mt19937 random_;
  GraphBuilder build_;
  std::vector<bool> is_read_;
  bool has_norm_ = false;
};

double norm(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Compares loss, logits, gradients and state. A gradient that is zero but for rounding, such as
// that of a bias in front of a batch norm, is measured by the size of the others.
void expect_alike(const reference::Result& expected, const BackendCase& found, const Scores& scores,
                  const Graph& graph) {
  constexpr double kTolerance = 1e-4;  // a batch norm of five samples amplifies rounding
  constexpr double kRounding = 1e-5;
  EXPECT_NEAR(scores.loss, expected.loss, kTolerance * std::max(1.0, expected.loss));
  EXPECT_LE(reference::relative_l2(expected.logits, found.model->logits().f32()), kTolerance);
  double largest = 0.0;
  for (const auto& gradient : expected.gradients) largest = std::max(largest, norm(gradient));
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const std::span<const float> values = found.arena.gradient(p).f32();
    std::vector<double> difference(values.begin(), values.end());
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.gradients[p][i];
    EXPECT_LE(norm(difference),
              std::max(kTolerance * norm(expected.gradients[p]), kRounding * largest))
        << graph.parameters[p].name;
  }
  for (std::size_t s = 0; s < graph.state.size(); ++s) {
    EXPECT_LE(reference::relative_l2(expected.state[s], found.state.value(s).f32()), kTolerance)
        << graph.state[s].name;
  }
}

TEST(ARandomNetwork, HasTheResultsOfTheInterpreter) {
  constexpr std::int64_t kSamples = 5;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Graph graph = Drawing(seed).draw();
    SCOPED_TRACE(to_text(graph));
    const reference::Variables variables = reference::random_variables(graph, seed + 1);
    const reference::Samples samples = reference::random_samples(graph, kSamples, seed + 2);
    const Batch batch = make_batch(graph, samples, kSamples);
    const reference::Result expected =
        reference::run(graph, variables, samples, kSamples, Mode::kTrain);
    for (const bool fuse : {true, false}) {
      for (const int lanes : {1, 2}) {
        BackendCase subject(graph, variables,
                            {.lanes = lanes, .batch_size = kSamples, .fuse = fuse});
        const Scores scores = subject.step(batch);
        expect_alike(expected, subject, scores, graph);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace syncopate
