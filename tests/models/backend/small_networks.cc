#include "tests/models/backend/small_networks.h"

#include <utility>

namespace syncopate {
namespace {

constexpr int kClasses = 10;

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

Graph build_graph(const std::string& name, const Shape& shape, const NetworkBody& body) {
  GraphBuilder build(name);
  return build.finish(body(build, build.input(shape, u8_input(shape.back()))));
}

// Returns a network whose samples are f32 and are not normalised.
SmallNetwork plain_network(std::string name, Shape shape, const NetworkBody& body) {
  GraphBuilder build(name);
  const NodeId x = build.input(std::move(shape), {.dtype = DType::kF32});
  return {std::move(name), build.finish(body(build, x))};
}

NetworkBody conv_norm_relu(int channels, Conv2dOp operation) {
  return [=](GraphBuilder& b, NodeId x) {
    return b.relu(b.batch_norm(b.conv2d(x, "conv", channels, operation), "bn"));
  };
}
// Returns the body of a network with a convolution and a residual block.
NetworkBody residual_block(int channels_in, int channels, int stride) {
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

// Appends networks with a class for every pixel.
void append_label_maps(std::vector<SmallNetwork>& all) {
  const auto append = [&](std::string name, const NetworkBody& body) {
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
  append_map(all, "BatchNormOfTheInput", {5, 5, 3},
             [](GraphBuilder& b, NodeId x) { return b.batch_norm(x, "bn"); });
  append_map(all, "ConvBatchNorm", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.batch_norm(b.conv2d(x, "conv", 10, same), "bn");
  });
  append_map(all, "ConvBatchNormRelu", {8, 7, 3}, conv_norm_relu(16, same));
  append_map(all, "ConvBatchNormRelu20To24", {6, 6, 20}, conv_norm_relu(24, same));
  append_map(all, "BatchNormWithItsOwnConstants", {6, 6, 16}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv", 16, {.pad = 1});
    return b.batch_norm(x, "bn", {.epsilon = 1e-3F, .momentum = 0.3F});
  });
  append_map(all, "ResidualBlock16", {8, 8, 3}, residual_block(16, 16, 1));
  append_map(all, "ResidualBlock10", {7, 6, 3}, residual_block(10, 10, 1));
  append_map(all, "ResidualBlock16To32", {8, 8, 3}, residual_block(16, 32, 2));
  append_map(all, "ResidualBlock5To24", {9, 7, 3}, residual_block(5, 24, 2));
  append_map(all, "Bottleneck", {9, 8, 3}, bottleneck);
  append_map(all, "StemForLargeImages", {23, 18, 3}, [](GraphBuilder& b, NodeId x) {
    const Conv2dOp conv1{.kernel_h = 7, .kernel_w = 7, .stride = 2, .pad = 3};
    return b.max_pool(conv_norm_relu(10, conv1)(b, x), {.window = 3, .stride = 2, .pad = 1});
  });
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
    append_map(all, name, {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
      x = b.activation(b.conv2d(x, "conv1", 10, same), kind);
      x = b.activation(b.batch_norm(b.conv2d(x, "conv2", 16, {.pad = 1}), "bn"), kind);
      return b.activation(b.dense(b.flatten(x), "hidden", 7), kind);
    });
  }
  append_map(all, "SigmoidReadByBatchNorm", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.activation(b.conv2d(x, "conv1", 10, same), Activation::kSigmoid);
    return b.batch_norm(x, "bn");
  });
  append_map(all, "LayerNorm", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.layer_norm(b.conv2d(x, "conv1", 10, same), "ln1");
    x = b.layer_norm(b.conv2d(b.relu(x), "conv2", 32, same), "ln2", {.epsilon = 1e-3F});
    return b.dense(b.layer_norm(b.flatten(x), "ln3"), "hidden", 7);
  });
  append_map(all, "LayerNormOfTheInput", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.layer_norm(x, "ln"), "conv", 10, same);
  });
  append_map(all, "LayerNormOfVectors", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.global_average_pool(b.conv2d(x, "conv", 20, same));
    const NodeId z = b.layer_norm(b.dense(y, "a", 20), "ln1");
    return b.add(b.relu(z), b.layer_norm(b.add(y, z), "ln2"));
  });
  append_map(all, "LayerNormReadTwice", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 20, same);
    const NodeId z = b.layer_norm(y, "ln");
    return b.add(b.conv2d(z, "conv2", 20, same), b.multiply(z, y));
  });
  append_map(all, "Dropout", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.dropout(b.relu(b.conv2d(x, "conv1", 10, same)), "drop1", {.rate = 0.3F});
    x = b.dropout(b.conv2d(x, "conv2", 16, same), "drop2", {.rate = 0.1F});
    return b.dropout(b.dense(b.flatten(x), "hidden", 21), "drop3");
  });
  append_map(all, "DropoutOfTheInput", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.conv2d(b.dropout(x, "drop"), "conv", 10, same);
  });
  append_map(all, "DropoutReadTwice", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 7, same);
    const NodeId z = b.dropout(y, "drop", {.rate = 0.7F});
    return b.add(b.multiply(z, y), b.relu(z));
  });
  append_map(all, "DropoutOfNothing", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.dropout(b.conv2d(x, "conv", 10, same), "drop", {.rate = 0.0F});
  });
  append_map(all, "ActivationOfTheInput", {6, 5, 3},
             [](GraphBuilder& b, NodeId x) { return b.activation(x, Activation::kTanh); });
  append_map(all, "Gate", {6, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 10, same);
    const NodeId gate = b.activation(b.conv2d(y, "conv2", 10, same), Activation::kSigmoid);
    return b.multiply(y, gate);
  });
  append_map(all, "Square", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 10, same);
    return b.multiply(y, y);
  });
  append_map(all, "ProductWithTheInput", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.multiply(b.conv2d(x, "conv", 3, same), x);
  });
  append_map(all, "ProductOfVectors", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.global_average_pool(b.conv2d(x, "conv", 10, same));
    return b.multiply(b.dense(y, "a", 7), b.relu(b.dense(y, "b", 7)));
  });
  append_map(all, "AveragePool", {8, 8, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.average_pool(b.relu(b.conv2d(x, "conv", 10, same)));
  });
  append_map(all, "PaddedAveragePool9x7", {9, 7, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.average_pool(b.conv2d(x, "conv", 16, same), {.window = 3, .stride = 2, .pad = 1});
  });
  append_map(all, "OverlappingAveragePool", {7, 8, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.conv2d(b.average_pool(x, {.window = 3, .stride = 1}), "conv", 10, same);
    return b.average_pool(x, {.window = 4, .stride = 3});
  });
  append_map(all, "Concat", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.relu(b.conv2d(x, "conv1", 10, same));
    return b.conv2d(b.concat({y, b.conv2d(y, "conv2", 5, same), x}), "conv3", 16, same);
  });
  append_map(all, "ConcatOfWholeBlocks", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 32, same);
    return b.batch_norm(b.concat({b.relu(y), b.conv2d(x, "conv2", 16, {.pad = 1})}), "bn");
  });
  append_map(all, "ConcatWithItself", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 10, same);
    return b.concat({y, y, y});
  });
  append_map(all, "ConcatOfVectors", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.global_average_pool(b.conv2d(x, "conv1", 10, same));
    const NodeId pixel = b.conv2d(x, "conv2", 4, {.kernel_h = 5, .kernel_w = 5});
    return b.concat({b.dense(y, "a", 7), y, b.flatten(pixel)});
  });
}

void append_joins(std::vector<SmallNetwork>& all) {
  const Conv2dOp same{.pad = 1, .bias = true};
  // In this network the result of the convolution is read both directly and after the ReLU.
  append_map(all, "ConvReadByReluAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 16, same);
    return b.add(y, b.relu(y));
  });
  append_map(all, "BatchNormReadByReluAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.batch_norm(b.conv2d(x, "conv", 16, {.pad = 1}), "bn");
    return b.add(b.relu(y), y);
  });
  append_map(all, "ConvReadByBatchNormAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 16, {.pad = 1});
    return b.relu(b.add(b.batch_norm(y, "bn"), y));
  });
  all.push_back({"SumOfTwoBatchNorms", crossed_branches_network()});
  append_map(all, "ReluReadByPoolAndAdd", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.relu(b.conv2d(x, "conv1", 16, same));
    const NodeId pooled = b.max_pool(y);
    return b.add(pooled, b.shortcut(y, 2, 16));
  });
  append_map(all, "SumReadTwice", {6, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv1", 16, same);
    const NodeId sum = b.add(y, b.conv2d(y, "conv2", 16, same));
    return b.add(sum, b.relu(b.conv2d(sum, "conv3", 16, same)));
  });
  append_map(all, "AddToItself", {5, 5, 3}, [=](GraphBuilder& b, NodeId x) {
    const NodeId y = b.conv2d(x, "conv", 10, same);
    return b.add(y, y);
  });
  // The kernel that also pools reads samples in another order than the other reader.
  append_map(all, "PooledFirstLayerBesideAnotherReader", {8, 8, 3}, [](GraphBuilder& b, NodeId x) {
    const NodeId y = b.relu(b.conv2d(x, "conv", 10, {.bias = true}));
    const NodeId z = b.max_pool(x, {.window = 4, .stride = 2});
    return b.concat({b.max_pool(y), z});
  });
  append_map(all, "ShortcutOfTheInput", {7, 6, 3},
             [](GraphBuilder& b, NodeId x) { return b.shortcut(x, 2, 10); });
  append_map(all, "ShortcutWithoutStride", {5, 6, 3}, [=](GraphBuilder& b, NodeId x) {
    return b.shortcut(b.conv2d(x, "conv", 10, same), 1, 24);
  });
  append_map(all, "PoolOfTheInput", {7, 7, 3},
             [](GraphBuilder& b, NodeId x) { return b.max_pool(x); });
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
  append_map(all, "FlattenedSamples", {5, 4, 3}, [](GraphBuilder&, NodeId x) { return x; });
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
  const auto append = [&](std::string name, DType dtype, const Shape& shape,
                          const NetworkBody& body) {
    GraphBuilder build(name);
    const NodeId x = build.input(shape, input_of(dtype, shape.back()));
    all.push_back({std::move(name), build.finish(classify(build, body(build, x)))});
  };
  const NetworkBody convolved = conv_relu(10, {.pad = 1, .bias = true});
  const NetworkBody unchanged = [](GraphBuilder&, NodeId x) { return x; };
  append("U16Grey", DType::kU16, {6, 5, 1}, convolved);
  append("U16Colour", DType::kU16, {6, 5, 3}, convolved);
  append("U16BatchNorm", DType::kU16, {5, 5, 3},
         [](GraphBuilder& b, NodeId x) { return b.batch_norm(x, "bn"); });
  append("U16Dense", DType::kU16, {4, 3, 2}, unchanged);
  append("F32NormalisedColour", DType::kF32, {6, 5, 3}, convolved);
  append("F32NormalisedFeatures", DType::kF32, {7}, unchanged);
}

}  // namespace

void append_map(std::vector<SmallNetwork>& all, std::string name, const Shape& shape,
                const NetworkBody& body) {
  Graph graph =
      build_graph(name, shape, [&](GraphBuilder& b, NodeId x) { return classify(b, body(b, x)); });
  all.push_back({std::move(name), std::move(graph)});
}

NetworkBody conv_relu(int channels, Conv2dOp operation) {
  return
      [=](GraphBuilder& b, NodeId x) { return b.relu(b.conv2d(x, "conv", channels, operation)); };
}

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
