// Networks of the operations that enlarge, reshape or multiply maps: channels that do or do not
// fill the blocks of a map, maps and vectors, values with several readers.
#include <array>
#include <utility>

#include "tests/models/backend/small_networks.h"

namespace syncopate {

void append_axis_networks(std::vector<SmallNetwork>& all) {
  const auto append = [&](std::string name, Shape shape, const NetworkBody& body) {
    GraphBuilder build(name);
    const NodeId x = build.input(std::move(shape), {.dtype = DType::kF32});
    const NodeId y = build.flatten(body(build, x));
    all.push_back({std::move(name), build.finish(build.dense(y, "fc", 10))});
  };
  const Conv2dOp same{.pad = 1, .bias = true};
  const Conv2dOp pointwise{.kernel_h = 1, .kernel_w = 1, .bias = true};

  append("UpsampleNearest", {4, 3, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.upsample2d(b.relu(b.conv2d(x, "conv1", 10, same)));
    return b.conv2d(b.upsample2d(x, {.scale = 3}), "conv2", 16, {.stride = 2});
  });
  append("UpsampleBilinear", {4, 3, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.upsample2d(b.conv2d(x, "conv1", 20, same), {.mode = Interpolation::kBilinear});
    x = b.upsample2d(x, {.scale = 3, .mode = Interpolation::kBilinear});
    return b.conv2d(x, "conv2", 7, {.stride = 2});
  });
  append("UpsampleBilinearOfOneRow", {1, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv", 8, pointwise);
    return b.upsample2d(x, {.scale = 4, .mode = Interpolation::kBilinear});
  });
  append("UpsampleOfTheInputReadTwice", {3, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.upsample2d(x);
    return b.concat({y, b.upsample2d(b.conv2d(x, "conv", 5, same)), y});
  });
  append("HardSigmoidClipAndLinear", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    // A bias in front of a batch norm would have the gradient 0 but for rounding.
    const Conv2dOp plain{.pad = 1};
    x = b.linear(b.conv2d(x, "conv1", 10, plain), 4.0F);
    x = b.batch_norm(b.activation(x, Activation::kHardSigmoid), "bn1");
    x = b.batch_norm(b.clip(b.conv2d(x, "conv2", 10, plain), 0.25F, 0.75F), "bn2");
    x = b.batch_norm(b.linear(b.conv2d(x, "conv3", 10, plain), -0.5F, 0.75F), "bn3");
    x = b.clip(b.dense(b.flatten(x), "hidden", 7), -0.5F, 0.5F);
    return b.activation(b.linear(x, 2.0F, 0.25F), Activation::kHardSigmoid);
  });
  append("LeakyRelu", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.leaky_relu(b.conv2d(x, "conv", 10, same), 0.25F);  // 10 channels fill no whole block
    x = b.leaky_relu(b.dense(b.flatten(x), "hidden", 7));
    return b.leaky_relu(b.dense(x, "negative", 7), -0.5F);
  });
  append("SqueezeAndExcitation", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 20, same);
    NodeId gate = b.reshape(b.global_average_pool(y), {1, 1, 20});
    gate = b.conv2d(b.relu(b.conv2d(gate, "squeeze", 6, pointwise)), "excite", 20, pointwise);
    return b.multiply(b.activation(gate, Activation::kHardSigmoid), y);
  });
  append("FactorsThatAreAVector", {19, 17, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 10, same);
    const NodeId gate = b.dense(b.global_average_pool(y), "gate", 10);
    return b.multiply(y, b.activation(gate, Activation::kSigmoid));
  });
  append("FactorsOfTheInput", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.multiply(x, b.dense(b.global_average_pool(x), "gate", 3));
  });
  append("FactorsOfOnePixel", {1, 1, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.multiply(x, b.dense(b.flatten(x), "gate", 3));
  });
  append("SoftmaxOfChannels", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.softmax(b.linear(b.conv2d(x, "conv1", 10, same), 4.0F));
    return b.softmax(b.linear(b.conv2d(x, "conv2", 32, same), 30.0F));
  });
  append("SoftmaxOfFeaturesReadTwice", {7}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.softmax(b.linear(b.dense(x, "hidden", 21), 3.0F));
    return b.multiply(y, y);
  });
  append("Slices", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 40, same);
    const NodeId z = b.concat({b.slice(y, 5, 20), b.slice(y, 16, 16), b.slice(x, 1, 2)});
    const NodeId hidden = b.dense(b.flatten(z), "hidden", 21);
    return b.multiply(b.slice(hidden, 0, 9), b.slice(hidden, 12, 9));
  });
  append("Reshape", {6, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.reshape(b.conv2d(x, "conv1", 20, same), {4, 6, 20});
    x = b.conv2d(b.reshape(x, {8, 6, 10}), "conv2", 5, same);
    x = b.dense(b.reshape(x, {240}), "hidden", 18);
    return b.conv2d(b.reshape(x, {3, 2, 3}), "conv3", 7, same);
  });
  append("ReshapeOfTheInput", {6, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.reshape(x, {2, 3, 12}), "conv", 7, same);
  });
  append("TransposeInEachOrder", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 18, same);
    const NodeId z = b.conv2d(b.transpose(y, {0, 2, 1}), "conv2", 9, same);  // [5, 18, 9]
    const NodeId a = b.transpose(z, {2, 0, 1});                              // [9, 5, 18]
    const NodeId c = b.transpose(z, {1, 2, 0});                              // [18, 9, 5]
    return b.add(b.transpose(c, {1, 2, 0}), b.transpose(b.transpose(a, {2, 1, 0}), {2, 1, 0}));
  });
  append("TransposeOfTheInput", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.transpose(x, {1, 0, 2}), "conv", 7, same);
  });
  append("MeanOverAxes", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 20, same);
    const NodeId rows = b.reduce_mean(y, std::array{0});       // [1, 4, 20]
    const NodeId channels = b.reduce_mean(y, std::array{2});   // [5, 4, 1]
    const NodeId pixel = b.reduce_mean(y, std::array{0, 1});   // [1, 1, 20]
    const NodeId column = b.reduce_mean(y, std::array{1, 2});  // [5, 1, 1]
    const NodeId one = b.reduce_mean(y, std::array{0, 1, 2});  // [1, 1, 1]
    NodeId features = b.concat({b.reshape(rows, {80}), b.reshape(channels, {20})});
    features = b.concat({features, b.reshape(pixel, {20}), b.reshape(column, {5})});
    return b.concat({features, b.flatten(one), b.reduce_mean(features, std::array{0})});
  });
  append("ProductsOfMatrices", {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId left = b.conv2d(x, "left", 19, same);                            // [5, 4, 19]
    const NodeId right = b.transpose(b.conv2d(x, "right", 19, same), {0, 2, 1});  // [5, 19, 4]
    return b.matmul(b.matmul(left, right), b.relu(left));
  });
  append("ProductWithTheInputAndItself", {2, 6, 6}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 6, same);
    return b.matmul(b.matmul(y, x), b.matmul(y, y));
  });
  // Two heads of four channels over twelve pixels. A bias of the keys would have the gradient 0.
  append("SelfAttention", {4, 3, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.reshape(b.conv2d(x, "embed", 8, same), {1, 12, 8});
    const NodeId normed = b.layer_norm(x, "norm");
    const auto heads = [&](const char* name, const Conv2dOp& op) {
      return b.transpose(b.reshape(b.conv2d(normed, name, 8, op), {12, 2, 4}), {1, 0, 2});
    };
    const Conv2dOp plain{.kernel_h = 1, .kernel_w = 1};
    const NodeId keys = b.transpose(heads("key", plain), {0, 2, 1});
    const NodeId weights = b.softmax(b.linear(b.matmul(heads("query", pointwise), keys), 0.5F));
    const NodeId mixed = b.transpose(b.matmul(weights, heads("value", pointwise)), {1, 0, 2});
    return b.add(x, b.conv2d(b.reshape(mixed, {1, 12, 8}), "out", 8, pointwise));
  });
}

}  // namespace syncopate
