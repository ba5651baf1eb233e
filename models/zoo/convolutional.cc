// VGG-16 and MobileNetV2, with the names and the order of parameters of torchvision.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

void require_large_samples(const NetworkInput& input, std::string_view network) {
  constexpr std::int64_t kSmallest = 32;  // pixels: the networks halve the map five times
  const Shape& sample = input.sample_shape;
  if (sample.size() != 3 || sample[0] < kSmallest || sample[1] < kSmallest) {
    throw ShapeError(fmt::format(
        "{}: samples are {} (H, W, C); expected at least 32x32 (the network is made for "
        "224x224)",
        network, to_string(sample)));
  }
}

// Adds a convolution, a batch norm and, if `activates`, a ReLU6. Layers `name`.0 and `name`.1.
NodeId conv_norm(GraphBuilder& build, NodeId x, const std::string& name, int channels,
                 Conv2dOp conv) {
  x = build.conv2d(x, name + ".0", channels, conv);
  return build.activation(build.batch_norm(x, name + ".1"), Activation::kRelu6);
}

// Adds an inverted residual: a 1x1 convolution to `expansion` times the channels, a depthwise 3x3
// one, and a 1x1 one to `channels` without an activation.
NodeId inverted_residual(GraphBuilder& build, NodeId x, const std::string& name, int expansion,
                         int channels, int stride) {
  constexpr Conv2dOp kPointwise{.kernel_h = 1, .kernel_w = 1};
  const auto in = static_cast<int>(build.shape(x)[2]);
  const int hidden = in * expansion;
  NodeId y = x;
  int layer = 0;
  if (expansion > 1) {
    y = conv_norm(build, y, fmt::format("{}.conv.{}", name, layer++), hidden, kPointwise);
  }
  y = conv_norm(build, y, fmt::format("{}.conv.{}", name, layer++), hidden,
                {.stride = stride, .pad = 1, .groups = hidden});
  y = build.conv2d(y, fmt::format("{}.conv.{}", name, layer), channels, kPointwise);
  y = build.batch_norm(y, fmt::format("{}.conv.{}", name, layer + 1));
  return stride == 1 && in == channels ? build.add(x, y) : y;
}

}  // namespace

Graph mobilenet_v2(const NetworkInput& input) {
  struct Stage {
    int expansion, channels, blocks, stride;
  };
  // Source: Sandler et al. 2018, table 2.
  constexpr std::array kStages = {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2},
                                  Stage{6, 64, 4, 2}, Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2},
                                  Stage{6, 320, 1, 1}};
  require_large_samples(input, "mobilenet-v2");
  GraphBuilder build("mobilenet-v2");
  NodeId x = build.input(input.sample_shape, input.input);
  x = conv_norm(build, x, "features.0", 32, {.stride = 2, .pad = 1});
  int layer = 1;
  for (const Stage& stage : kStages) {
    for (int block = 0; block < stage.blocks; ++block) {
      x = inverted_residual(build, x, fmt::format("features.{}", layer++), stage.expansion,
                            stage.channels, block == 0 ? stage.stride : 1);
    }
  }
  x = conv_norm(build, x, fmt::format("features.{}", layer), 1280, {.kernel_h = 1, .kernel_w = 1});
  x = build.dropout(build.global_average_pool(x), "classifier.0", {.rate = 0.2F});
  return build.finish(add_classifier(build, x, "classifier.1", input), input.loss());
}

Graph vgg16(const NetworkInput& input) {
  constexpr int kPool = 0;
  constexpr std::array kLayers = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                  kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  require_large_samples(input, "vgg16");
  GraphBuilder build("vgg16");
  NodeId x = build.input(input.sample_shape, input.input);
  int layer = 0;  // torchvision counts ReLU and pooling, too
  for (const int channels : kLayers) {
    if (channels == kPool) {
      x = build.max_pool(x);
      ++layer;
    } else {
      x = build.relu(
          build.conv2d(x, fmt::format("features.{}", layer), channels, {.pad = 1, .bias = true}));
      layer += 2;
    }
  }
  x = build.flatten(x);
  x = build.relu(build.dense(x, "classifier.0", 4096));
  x = build.relu(build.dense(build.dropout(x, "classifier.2"), "classifier.3", 4096));
  x = build.dropout(x, "classifier.5");
  return build.finish(add_classifier(build, x, "classifier.6", input), input.loss());
}

}  // namespace syncopate
