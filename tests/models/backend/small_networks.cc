// The file is long because it is one list: a network for each operation and each pattern that is
// fused.
#include "tests/models/backend/small_networks.h"

#include <functional>
#include <utility>

namespace syncopate {
namespace {

constexpr int kClasses = 10;

using Body = std::function<NodeId(GraphBuilder&, NodeId)>;

InputOp input_of(DType dtype, std::int64_t channels) {
  InputOp operation{.dtype = dtype};
  for (std::int64_t c = 0; c < channels; ++c) {
    operation.mean.push_back(0.4F + 0.05F * static_cast<float>(c));
    operation.stddev.push_back(0.3F - 0.01F * static_cast<float>(c));
  }
  return operation;
}

InputOp u8_input(std::int64_t channels) { return input_of(DType::kU8, channels); }

NodeId classify(GraphBuilder& build, NodeId x) {
  return build.dense(build.flatten(x), "fc", kClasses);
}

Graph build_graph(const std::string& name, const Shape& shape, const Body& body) {
  GraphBuilder build(name);
  return build.finish(body(build, build.input(shape, u8_input(shape.back()))));
}

SmallNetwork map_network(std::string name, const Shape& shape, const Body& body) {
  Graph graph =
      build_graph(name, shape, [&](GraphBuilder& b, NodeId x) { return classify(b, body(b, x)); });
  return {std::move(name), std::move(graph)};
}

// Returns a network whose samples are f32 and are not normalised.
SmallNetwork plain_network(std::string name, Shape shape, const Body& body) {
  GraphBuilder build(name);
  const NodeId x = build.input(std::move(shape), {.dtype = DType::kF32});
  return {std::move(name), build.finish(body(build, x))};
}

Body conv(int channels, Conv2dOp operation) {
  return [=](GraphBuilder& b, NodeId x) { return b.conv2d(x, "conv", channels, operation); };
}
Body conv_relu(int channels, Conv2dOp operation) {
  return
      [=](GraphBuilder& b, NodeId x) { return b.relu(b.conv2d(x, "conv", channels, operation)); };
}
Body conv_relu_pool(int channels, Conv2dOp operation, MaxPoolOp pool = {}) {
  return [=](GraphBuilder& b, NodeId x) {
    return b.max_pool(b.relu(b.conv2d(x, "conv", channels, operation)), pool);
  };
}
Body conv_norm_relu(int channels, Conv2dOp operation) {
  return [=](GraphBuilder& b, NodeId x) {
    return b.relu(b.batch_norm(b.conv2d(x, "conv", channels, operation), "bn"));
  };
}
// Returns the body of a network with a convolution and a residual block.
Body residual_block(int channels_in, int channels, int stride) {
  return [=](GraphBuilder& b, NodeId x) {
    const Conv2dOp same{.pad = 1};
    x = b.relu(b.batch_norm(b.conv2d(x, "conv0", channels_in, same), "bn0"));
    NodeId y = b.conv2d(x, "conv1", channels, {.stride = stride, .pad = 1});
    y = b.relu(b.batch_norm(y, "bn1"));
    y = b.batch_norm(b.conv2d(y, "conv2", channels, same), "bn2");
    const NodeId skip = stride == 1 ? x : b.shortcut(x, stride, channels);
    return b.relu(b.add(y, skip));
  };
}
// Returns the body of a network with a convolution and a bottleneck block, whose shortcut is a
// projection.
NodeId bottleneck(GraphBuilder& b, NodeId x) {
  const Conv2dOp pointwise{.kernel_h = 1, .kernel_w = 1};
  const Conv2dOp projection{.kernel_h = 1, .kernel_w = 1, .stride = 2};
  x = b.conv2d(x, "conv0", 20, {.pad = 1});
  NodeId y = b.relu(b.batch_norm(b.conv2d(x, "conv1", 10, pointwise), "bn1"));
  y = b.relu(b.batch_norm(b.conv2d(y, "conv2", 10, {.stride = 2, .pad = 1}), "bn2"));
  y = b.batch_norm(b.conv2d(y, "conv3", 40, pointwise), "bn3");
  return b.relu(b.add(y, b.batch_norm(b.conv2d(x, "conv4", 40, projection), "bn4")));
}

void append_convolutions(std::vector<SmallNetwork>& all) {
  const Conv2dOp valid{.bias = true};
  const Conv2dOp same{.pad = 1, .bias = true};
  const Conv2dOp same_plain{.pad = 1};
  const Conv2dOp pointwise{.kernel_h = 1, .kernel_w = 1, .bias = true};
  const Conv2dOp strided{.stride = 2, .pad = 1, .bias = true};
  all.push_back(map_network("Conv5To24", {7, 6, 5}, conv(24, valid)));
  all.push_back(map_network("ConvWithoutBias", {8, 8, 16}, conv(16, same_plain)));
  all.push_back(map_network("ConvStride2On9x8", {9, 8, 3}, conv(10, strided)));
  all.push_back(map_network(
      "Conv7x7Stride2", {11, 10, 3},
      conv(10, {.kernel_h = 7, .kernel_w = 7, .stride = 2, .pad = {3, 2, 3, 4}, .bias = true})));
  all.push_back(map_network("ConvStride2On8x8", {8, 8, 16}, conv(32, strided)));
  all.push_back(map_network("Conv1x1", {5, 7, 20}, conv(24, pointwise)));
  all.push_back(map_network("Conv1x1Stride2", {7, 7, 16},
                            conv(16, {.kernel_h = 1, .kernel_w = 1, .stride = 2})));
  all.push_back(map_network("Conv5x3", {9, 8, 3},
                            conv(10, {.kernel_h = 5, .kernel_w = 3, .pad = 2, .bias = true})));
  const Conv2dOp last_sides{.stride = 2, .pad = {0, 0, 1, 1}, .bias = true};
  all.push_back(map_network("ConvPaddedAtLastSides", {8, 8, 16}, conv_relu(24, last_sides)));
  all.push_back(map_network("ConvPaddedAtLastSidesOfSamples", {8, 7, 3}, conv(10, last_sides)));
  all.push_back(map_network("ConvPaddedUnevenly", {7, 6, 5}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv1", 12, {.kernel_h = 5, .kernel_w = 3, .pad = {3, 1, 0, 2}});
    return b.conv2d(x, "conv2", 20, {.pad = {0, 2, 1, 0}, .bias = true});
  }));
  // For these kernels oneDNN has only its reference code, on 16 and on 8 channels in a block.
  all.push_back(map_network("Conv4x4OfFewChannels", {7, 6, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv1", 5, {.kernel_h = 1, .kernel_w = 1});
    return b.conv2d(x, "conv2", 3, {.kernel_h = 4, .kernel_w = 4, .pad = {3, 0, 3, 1}});
  }));
  all.push_back(map_network("Conv4x1OfFewRows", {3, 9, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv1", 2, {.kernel_h = 1, .kernel_w = 1});
    return b.conv2d(x, "conv2", 5,
                    {.kernel_h = 4, .kernel_w = 1, .stride = 2, .pad = {1, 0, 1, 0}});
  }));
  all.push_back(map_network("ConvRelu20To24", {6, 9, 20}, conv_relu(24, same)));
  all.push_back(map_network("ConvRelu32To32", {8, 8, 32}, conv_relu(32, same)));
  // The algorithm table lists ConvRelu64To64On8x8 and ConvTwice32On16x16, so they run with
  // Winograd.
  all.push_back(map_network("ConvRelu64To64On8x8", {8, 8, 64}, conv_relu(64, same)));
  all.push_back(map_network("ConvTwice32On16x16", {16, 16, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.relu(b.conv2d(x, "conv1", 32, same));
    return b.relu(b.conv2d(x, "conv2", 32, same));
  }));
  all.push_back(map_network("ConvReluWithoutBias", {6, 6, 3}, conv_relu(10, same_plain)));
  all.push_back(map_network("ConvReluPoolGrey28x28", {28, 28, 1}, conv_relu_pool(10, valid)));
  all.push_back(map_network("ConvReluPoolGrey28x28To32", {28, 28, 1}, conv_relu_pool(32, valid)));
  all.push_back(map_network("ConvReluPoolGrey27x27", {27, 27, 1}, conv_relu_pool(24, valid)));
  all.push_back(map_network("ConvReluPoolGrey9x7", {9, 7, 1}, conv_relu_pool(16, same)));
  all.push_back(map_network("ConvReluPoolColour28x28", {28, 28, 3}, conv_relu_pool(16, valid)));
  all.push_back(map_network("ConvReluPoolColour27x27", {27, 27, 3}, conv_relu_pool(10, valid)));
  all.push_back(map_network("ConvReluPoolColour9x7", {9, 7, 3}, conv_relu_pool(24, valid)));
  all.push_back(map_network("ConvReluPoolOfThree", {11, 12, 1},
                            conv_relu_pool(16, valid, {.window = 3, .stride = 3})));
  all.push_back(map_network("ConvReluOverlappingPool", {11, 12, 3},
                            conv_relu_pool(16, valid, {.window = 3, .stride = 2})));
  // These networks have padded pooling, on maps whose size is or is not a multiple of the stride.
  // There are many ties, because the ReLU's output has many zeros.
  const MaxPoolOp padded{.window = 3, .stride = 2, .pad = 1};
  all.push_back(map_network("ConvReluPaddedPool9x8", {9, 8, 3}, conv_relu_pool(16, same, padded)));
  all.push_back(map_network("ConvReluPaddedPool8x7", {8, 7, 3}, conv_relu_pool(10, same, padded)));
  all.push_back(map_network("ConvReluPaddedPoolOfFive", {7, 6, 3},
                            conv_relu_pool(24, same, {.window = 5, .stride = 1, .pad = 2})));
  all.push_back(map_network("PaddedPoolOfOnePixel", {3, 3, 3}, conv_relu_pool(10, valid, padded)));
  all.push_back(map_network("ConvPoolWithoutRelu", {8, 9, 1}, [=](GraphBuilder& b, NodeId x) {
    return b.max_pool(b.conv2d(x, "conv", 16, valid));
  }));
  all.push_back(map_network("TwoConvReluPools", {15, 14, 1}, [=](GraphBuilder& b, NodeId x) {
    x = b.max_pool(b.relu(b.conv2d(x, "conv1", 16, valid)));
    return b.max_pool(b.relu(b.conv2d(x, "conv2", 24, same)));
  }));
}

// Appends convolutions of groups: depthwise ones, groups that fill blocks of channels, groups that
// are joined, and groups of the samples.
void append_groups(std::vector<SmallNetwork>& all) {
  const auto append = [&](const std::string& name, int in, int out, int groups,
                          Conv2dOp op = {.pad = 1}) {
    op.groups = groups;
    all.push_back(map_network(name, {7, 8, 3}, [=](GraphBuilder& b, NodeId x) {
      x = b.relu(b.conv2d(x, "conv0", in, {.pad = 1, .bias = true}));
      return b.relu(b.conv2d(x, "conv1", out, op));
    }));
  };
  append("Depthwise16", 16, 16, 16);
  append("Depthwise40Stride2", 40, 40, 40, {.stride = 2, .pad = 1, .bias = true});
  append("Depthwise6", 6, 6, 6, {.pad = 1, .bias = true});
  append("Depthwise32Of5x5", 32, 32, 32, {.kernel_h = 5, .kernel_w = 5, .pad = 2});
  append("Depthwise24PaddedAtLastSides", 24, 24, 24, {.stride = 2, .pad = {0, 0, 1, 1}});
  append("DepthwiseOf1x1", 16, 16, 16, {.kernel_h = 1, .kernel_w = 1});
  append("DepthwiseTwice", 16, 32, 16);
  append("Groups2Of32", 32, 64, 2);
  append("Groups8Of4", 32, 32, 8, {.pad = 1, .bias = true});
  append("Groups4Of8To4", 32, 16, 4);
  append("Groups3Of4", 12, 18, 3, {.stride = 2, .pad = 1, .bias = true});
  const Conv2dOp of_samples{.pad = 1, .bias = true, .groups = 3};
  all.push_back(map_network("DepthwiseOfTheInput", {6, 7, 3}, conv_relu(3, of_samples)));
  all.push_back(map_network("GroupsOfTheInput", {6, 7, 3}, conv_relu_pool(12, of_samples)));
}

void append_transposed(std::vector<SmallNetwork>& all) {
  const auto append = [&](const std::string& name, int in, int out, ConvTranspose2dOp op) {
    all.push_back(map_network(name, {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
      x = b.relu(b.conv2d(x, "conv0", in, {.pad = 1, .bias = true}));
      return b.relu(b.conv_transpose2d(x, "up", out, op));
    }));
  };
  append("Transposed16To16", 16, 16, {.pad = {0, 0, 1, 1}, .bias = true});
  append("Transposed20To3", 20, 3, {.pad = {1, 1, 0, 0}, .bias = true});
  append("Transposed32To40Of2x2", 32, 40, {.kernel_h = 2, .kernel_w = 2});
  append("Transposed8To20Stride1", 8, 20, {.stride = 1, .pad = 1});
  append("Transposed6To6Of4x3", 6, 6, {.kernel_h = 4, .kernel_w = 3, .stride = 3, .pad = 1});
  all.push_back(map_network("TransposedInput", {4, 3, 3}, [](GraphBuilder& b, NodeId x) {
    return b.conv_transpose2d(x, "up", 10, {.pad = 1, .bias = true});
  }));
  all.push_back(map_network("TransposedReadTwice", {4, 4, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv_transpose2d(b.conv2d(x, "conv0", 16, {.pad = 1}), "up", 20, {.pad = 1});
    return b.add(b.relu(x), x);
  }));
}

// Appends networks with a class for every pixel.
void append_label_maps(std::vector<SmallNetwork>& all) {
  const auto append = [&](std::string name, const Body& body) {
    Graph graph = build_graph(name, {6, 8, 3}, body);
    all.push_back({std::move(name), std::move(graph)});
  };
  append("ClassesOfPixels", [](GraphBuilder& b, NodeId x) {
    return b.conv2d(x, "conv", 5, {.pad = 1, .bias = true});
  });
  append("ManyClassesOfPixels", [](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.relu(b.conv2d(x, "conv0", 16, {.pad = 1})), "conv", 40, {.bias = true});
  });
  append("SamplesAsLogitsOfPixels", [](GraphBuilder&, NodeId x) { return x; });
  append("EncoderAndDecoder", [](GraphBuilder& b, NodeId x) {
    const NodeId wide = b.relu(b.conv2d(x, "conv1", 16, {.pad = 1, .bias = true}));
    x = b.relu(b.conv2d(wide, "conv2", 24, {.stride = 2, .pad = {0, 0, 1, 1}, .bias = true}));
    x = b.relu(b.conv_transpose2d(x, "up1", 16, {.pad = {0, 0, 1, 1}, .bias = true}));
    return b.conv2d(b.add(x, wide), "conv3", 2, {.kernel_h = 1, .kernel_w = 1, .bias = true});
  });
  all.back().graph.set_label_smoothing(0.1F);
}

void append_normalised(std::vector<SmallNetwork>& all) {
  const Conv2dOp same{.pad = 1};
  all.push_back(map_network("BatchNormOfTheInput", {5, 5, 3},
                            [](GraphBuilder& b, NodeId x) { return b.batch_norm(x, "bn"); }));
  all.push_back(map_network("ConvBatchNorm", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.batch_norm(b.conv2d(x, "conv", 10, same), "bn");
  }));
  all.push_back(map_network("ConvBatchNormRelu", {8, 7, 3}, conv_norm_relu(16, same)));
  all.push_back(map_network("ConvBatchNormRelu20To24", {6, 6, 20}, conv_norm_relu(24, same)));
  all.push_back(
      map_network("BatchNormWithItsOwnConstants", {6, 6, 16}, [](GraphBuilder& b, NodeId x) {
        x = b.conv2d(x, "conv", 16, {.pad = 1});
        return b.batch_norm(x, "bn", {.epsilon = 1e-3F, .momentum = 0.3F});
      }));
  all.push_back(map_network("ResidualBlock16", {8, 8, 3}, residual_block(16, 16, 1)));
  all.push_back(map_network("ResidualBlock10", {7, 6, 3}, residual_block(10, 10, 1)));
  all.push_back(map_network("ResidualBlock16To32", {8, 8, 3}, residual_block(16, 32, 2)));
  all.push_back(map_network("ResidualBlock5To24", {9, 7, 3}, residual_block(5, 24, 2)));
  all.push_back(map_network("Bottleneck", {9, 8, 3}, bottleneck));
  all.push_back(map_network("StemForLargeImages", {23, 18, 3}, [](GraphBuilder& b, NodeId x) {
    const Conv2dOp conv1{.kernel_h = 7, .kernel_w = 7, .stride = 2, .pad = 3};
    return b.max_pool(conv_norm_relu(10, conv1)(b, x), {.window = 3, .stride = 2, .pad = 1});
  }));
}

// Networks of the operations that no network of the zoo has: channels that do or do not fill the
// blocks of a map, maps and vectors, values with several readers.
void append_others(std::vector<SmallNetwork>& all) {
  const Conv2dOp same{.pad = 1, .bias = true};
  const std::pair<const char*, Activation> activations[] = {
      {"Sigmoid", Activation::kSigmoid},     {"Tanh", Activation::kTanh},
      {"Gelu", Activation::kGelu},           {"Silu", Activation::kSilu},
      {"HardSwish", Activation::kHardSwish}, {"Relu6", Activation::kRelu6}};
  for (const auto& [name, kind] : activations) {
    all.push_back(map_network(name, {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
      x = b.activation(b.conv2d(x, "conv1", 10, same), kind);
      x = b.activation(b.batch_norm(b.conv2d(x, "conv2", 16, {.pad = 1}), "bn"), kind);
      return b.activation(b.dense(b.flatten(x), "hidden", 7), kind);
    }));
  }
  all.push_back(map_network("SigmoidReadByBatchNorm", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.activation(b.conv2d(x, "conv1", 10, same), Activation::kSigmoid);
    return b.batch_norm(x, "bn");
  }));
  all.push_back(map_network("LayerNorm", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.layer_norm(b.conv2d(x, "conv1", 10, same), "ln1");
    x = b.layer_norm(b.conv2d(b.relu(x), "conv2", 32, same), "ln2", {.epsilon = 1e-3F});
    return b.dense(b.layer_norm(b.flatten(x), "ln3"), "hidden", 7);
  }));
  all.push_back(map_network("LayerNormOfTheInput", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.layer_norm(x, "ln"), "conv", 10, same);
  }));
  all.push_back(map_network("LayerNormOfVectors", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.global_average_pool(b.conv2d(x, "conv", 20, same));
    const NodeId z = b.layer_norm(b.dense(y, "a", 20), "ln1");
    return b.add(b.relu(z), b.layer_norm(b.add(y, z), "ln2"));
  }));
  all.push_back(map_network("LayerNormReadTwice", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 20, same);
    const NodeId z = b.layer_norm(y, "ln");
    return b.add(b.conv2d(z, "conv2", 20, same), b.multiply(z, y));
  }));
  all.push_back(map_network("Dropout", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.dropout(b.relu(b.conv2d(x, "conv1", 10, same)), "drop1", {.rate = 0.3F});
    x = b.dropout(b.conv2d(x, "conv2", 16, same), "drop2", {.rate = 0.1F});
    return b.dropout(b.dense(b.flatten(x), "hidden", 21), "drop3");
  }));
  all.push_back(map_network("DropoutOfTheInput", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.dropout(x, "drop"), "conv", 10, same);
  }));
  all.push_back(map_network("DropoutReadTwice", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 7, same);
    const NodeId z = b.dropout(y, "drop", {.rate = 0.7F});
    return b.add(b.multiply(z, y), b.relu(z));
  }));
  all.push_back(map_network("DropoutOfNothing", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.dropout(b.conv2d(x, "conv", 10, same), "drop", {.rate = 0.0F});
  }));
  all.push_back(map_network("ActivationOfTheInput", {6, 5, 3}, [](GraphBuilder& b, NodeId x) {
    return b.activation(x, Activation::kTanh);
  }));
  all.push_back(map_network("Gate", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 10, same);
    const NodeId gate = b.activation(b.conv2d(y, "conv2", 10, same), Activation::kSigmoid);
    return b.multiply(y, gate);
  }));
  all.push_back(map_network("Square", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 10, same);
    return b.multiply(y, y);
  }));
  all.push_back(map_network("ProductWithTheInput", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.multiply(b.conv2d(x, "conv", 3, same), x);
  }));
  all.push_back(map_network("ProductOfVectors", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.global_average_pool(b.conv2d(x, "conv", 10, same));
    return b.multiply(b.dense(y, "a", 7), b.relu(b.dense(y, "b", 7)));
  }));
  all.push_back(map_network("AveragePool", {8, 8, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.average_pool(b.relu(b.conv2d(x, "conv", 10, same)));
  }));
  all.push_back(map_network("PaddedAveragePool9x7", {9, 7, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.average_pool(b.conv2d(x, "conv", 16, same), {.window = 3, .stride = 2, .pad = 1});
  }));
  all.push_back(map_network("OverlappingAveragePool", {7, 8, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.conv2d(b.average_pool(x, {.window = 3, .stride = 1}), "conv", 10, same);
    return b.average_pool(x, {.window = 4, .stride = 3});
  }));
  all.push_back(map_network("Concat", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.relu(b.conv2d(x, "conv1", 10, same));
    return b.conv2d(b.concat({y, b.conv2d(y, "conv2", 5, same), x}), "conv3", 16, same);
  }));
  all.push_back(map_network("ConcatOfWholeBlocks", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 32, same);
    return b.batch_norm(b.concat({b.relu(y), b.conv2d(x, "conv2", 16, {.pad = 1})}), "bn");
  }));
  all.push_back(map_network("ConcatWithItself", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 10, same);
    return b.concat({y, y, y});
  }));
  all.push_back(map_network("ConcatOfVectors", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.global_average_pool(b.conv2d(x, "conv1", 10, same));
    const NodeId pixel = b.conv2d(x, "conv2", 4, {.kernel_h = 5, .kernel_w = 5});
    return b.concat({b.dense(y, "a", 7), y, b.flatten(pixel)});
  }));
}

void append_joins(std::vector<SmallNetwork>& all) {
  const Conv2dOp same{.pad = 1, .bias = true};
  // In this network the result of the convolution is read both directly and after the ReLU.
  all.push_back(map_network("ConvReadByReluAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 16, same);
    return b.add(y, b.relu(y));
  }));
  all.push_back(map_network("BatchNormReadByReluAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.batch_norm(b.conv2d(x, "conv", 16, {.pad = 1}), "bn");
    return b.add(b.relu(y), y);
  }));
  all.push_back(map_network("ConvReadByBatchNormAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 16, {.pad = 1});
    return b.relu(b.add(b.batch_norm(y, "bn"), y));
  }));
  all.push_back({"SumOfTwoBatchNorms", crossed_branches_network()});
  all.push_back(map_network("ReluReadByPoolAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.relu(b.conv2d(x, "conv1", 16, same));
    const NodeId pooled = b.max_pool(y);
    return b.add(pooled, b.shortcut(y, 2, 16));
  }));
  all.push_back(map_network("SumReadTwice", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 16, same);
    const NodeId sum = b.add(y, b.conv2d(y, "conv2", 16, same));
    return b.add(sum, b.relu(b.conv2d(sum, "conv3", 16, same)));
  }));
  all.push_back(map_network("AddToItself", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 10, same);
    return b.add(y, y);
  }));
  // The kernel that also pools reads samples in another order than the other reader.
  all.push_back(
      map_network("PooledFirstLayerBesideAnotherReader", {8, 8, 3}, [](GraphBuilder& b, NodeId x) {
        const NodeId y = b.relu(b.conv2d(x, "conv", 10, {.bias = true}));
        const NodeId z = b.max_pool(x, {.window = 4, .stride = 2});
        return b.concat({b.max_pool(y), z});
      }));
  all.push_back(map_network("ShortcutOfTheInput", {7, 6, 3},
                            [](GraphBuilder& b, NodeId x) { return b.shortcut(x, 2, 10); }));
  all.push_back(map_network("ShortcutWithoutStride", {5, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.shortcut(b.conv2d(x, "conv", 10, same), 1, 24);
  }));
  all.push_back(map_network("PoolOfTheInput", {7, 7, 3},
                            [](GraphBuilder& b, NodeId x) { return b.max_pool(x); }));
}

void append_vectors(std::vector<SmallNetwork>& all) {
  all.push_back(plain_network("DenseChain", {13}, [](GraphBuilder& b, NodeId x) {
    x = b.relu(b.dense(x, "fc1", 20));
    x = b.relu(b.dense(x, "fc2", 7));
    return b.dense(x, "fc3", kClasses);
  }));
  all.push_back(plain_network("DenseWithoutRelu", {16}, [](GraphBuilder& b, NodeId x) {
    return b.dense(b.dense(x, "fc1", 32), "fc2", 3);
  }));
  all.push_back(plain_network("DenseWithoutBias", {16}, [](GraphBuilder& b, NodeId x) {
    x = b.relu(b.dense(x, "fc1", 20, Init::kGlorotUniform, {.bias = false}));
    return b.dense(x, "fc2", 3, Init::kGlorotUniform, {.bias = false});
  }));
  all.push_back(plain_network("SamplesAsLogits", {5}, [](GraphBuilder&, NodeId x) { return x; }));
  all.push_back(plain_network("DenseReadTwice", {9}, [](GraphBuilder& b, NodeId x) {
    const NodeId y = b.dense(x, "fc1", 12);
    return b.dense(b.add(b.relu(y), y), "fc2", 5);
  }));
  all.push_back(
      map_network("FlattenedSamples", {5, 4, 3}, [](GraphBuilder&, NodeId x) { return x; }));
  all.push_back(plain_network("MapOfFloats", {6, 5, 3}, [](GraphBuilder& b, NodeId x) {
    return classify(b, b.relu(b.conv2d(x, "conv", 8, {.pad = 1, .bias = true})));
  }));
  SmallNetwork smoothed = plain_network(
      "SmoothedLabels", {9}, [](GraphBuilder& b, NodeId x) { return b.dense(x, "fc", 5); });
  smoothed.graph.set_label_smoothing(0.2F);
  all.push_back(std::move(smoothed));
  GraphBuilder average("average");
  NodeId x =
      average.conv2d(average.input({6, 5, 3}, u8_input(3)), "conv", 20, {.pad = 1, .bias = true});
  x = average.global_average_pool(average.relu(x));
  all.push_back({"GlobalAveragePool", average.finish(average.dense(x, "fc", kClasses))});
}

// Appends networks whose samples are normalised and not u8, in every layout of the first layer.
void append_sample_types(std::vector<SmallNetwork>& all) {
  const auto append = [&](std::string name, DType dtype, const Shape& shape, const Body& body) {
    GraphBuilder build(name);
    const NodeId x = build.input(shape, input_of(dtype, shape.back()));
    all.push_back({std::move(name), build.finish(classify(build, body(build, x)))});
  };
  const Body convolved = conv_relu(10, {.pad = 1, .bias = true});
  const Body unchanged = [](GraphBuilder&, NodeId x) { return x; };
  append("U16Grey", DType::kU16, {6, 5, 1}, convolved);
  append("U16Colour", DType::kU16, {6, 5, 3}, convolved);
  append("U16BatchNorm", DType::kU16, {5, 5, 3},
         [](GraphBuilder& b, NodeId x) { return b.batch_norm(x, "bn"); });
  append("U16Dense", DType::kU16, {4, 3, 2}, unchanged);
  append("F32NormalisedColour", DType::kF32, {6, 5, 3}, convolved);
  append("F32NormalisedFeatures", DType::kF32, {7}, unchanged);
}

}  // namespace

Graph crossed_branches_network() {
  return build_graph("crossed", {6, 5, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv0", 10, {.pad = 1});
    const NodeId left = b.batch_norm(b.conv2d(x, "conv1", 10, {.pad = 1}), "bn1");
    const NodeId right = b.batch_norm(b.conv2d(x, "conv2", 10, {.pad = 1}), "bn2");
    return classify(b, b.relu(b.add(left, right)));
  });
}

Graph everything_network() {
  return build_graph("everything", {13, 11, 3}, [](GraphBuilder& b, NodeId x) {
    const Conv2dOp same{.pad = 1};
    x = b.max_pool(b.relu(b.conv2d(x, "conv1", 10, {.bias = true})));
    NodeId y = b.relu(b.batch_norm(b.conv2d(x, "conv2", 10, same), "bn2"));
    y = b.batch_norm(b.conv2d(y, "conv3", 10, same), "bn3");
    x = b.relu(b.add(y, x));
    y = b.relu(b.batch_norm(b.conv2d(x, "conv4", 24, {.stride = 2, .pad = 1}), "bn4"));
    y = b.batch_norm(b.conv2d(y, "conv5", 24, same), "bn5");
    x = b.relu(b.add(y, b.shortcut(x, 2, 24)));
    x = b.relu(b.dense(b.global_average_pool(x), "fc1", 17));
    return b.dense(x, "fc2", kClasses);
  });
}

std::vector<SmallNetwork> small_networks() {
  std::vector<SmallNetwork> all;
  append_convolutions(all);
  append_groups(all);
  append_transposed(all);
  append_label_maps(all);
  append_normalised(all);
  append_joins(all);
  append_others(all);
  append_vectors(all);
  append_sample_types(all);
  append_losses_of_numbers(all);
  append_axis_networks(all);
  all.push_back({"Everything", everything_network()});
  return all;
}

}  // namespace syncopate
