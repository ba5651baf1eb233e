// The networks that --model can name: each a short function that builds a graph.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/graph/graph.h"

namespace syncopate {

// What the data demands of a network.
struct NetworkInput {
  Shape sample_shape;  // [H, W, C]
  int classes = 10;
  InputOp input;
};

// The network of TensorFlow's tf.distribute guides: conv 3x3x32 valid, ReLU, max-pool 2, flatten,
// dense 64, ReLU, dense classes.
Graph mnist_cnn(const NetworkInput& input);
// Flatten, dense 128, ReLU, dense classes.
Graph mlp(const NetworkInput& input);
// Depth 6n + 2 with option A shortcuts. Source: He et al. 2016, section 4.2.
Graph resnet20(const NetworkInput& input);
Graph resnet56(const NetworkInput& input);
// Bottlenecks with projections where the shape changes; 32x32 samples at least. Source: He et al.
// 2016, table 1.
Graph resnet50(const NetworkInput& input);

struct NetworkRow {
  std::string_view name;
  std::string_view help;
  Graph (*build)(const NetworkInput&);
};
// The table behind --model.
std::span<const NetworkRow> networks() noexcept;

// Throws UsageError for an unknown name (listing the right ones), ShapeError when the samples are
// too small.
Graph build_network(std::string_view name, const NetworkInput& input);

}  // namespace syncopate
