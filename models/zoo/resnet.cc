// The residual networks. ResNet-50 has the names and the order of parameters of torchvision. The
// stride of its bottlenecks is in the 3x3 convolution ("ResNet v1.5"), which costs more than a
// stride in the first 1x1 convolution and classifies better; resnet50-v1 is Keras's and has the
// latter. Source: He et al. 2016, section 4.2 for small images, table 1 for ResNet-50.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

constexpr Conv2dOp kConv3x3 = {.kernel_h = 3, .kernel_w = 3, .stride = 1, .pad = 1};

NodeId basic_block(GraphBuilder& build, NodeId x, const std::string& name, int channels,
                   int stride) {
  Conv2dOp first = kConv3x3;
  first.stride = stride;
  NodeId y = build.conv2d(x, name + ".conv1", channels, first);
  y = build.relu(build.batch_norm(y, name + ".bn1"));
  y = build.conv2d(y, name + ".conv2", channels, kConv3x3);
  y = build.batch_norm(y, name + ".bn2");
  const NodeId skip = stride == 1 ? x : build.shortcut(x, stride, channels);
  return build.relu(build.add(y, skip));
}

// Builds ResNet for small images: three stages of `blocks` blocks each, with 16, 32 and 64
// channels; 6 * blocks + 2 layers. Source: He et al. 2016, section 4.2.
Graph resnet_cifar(std::string name, int blocks, const NetworkInput& input) {
  GraphBuilder build(std::move(name));
  NodeId x = build.input(input.sample_shape, input.input);
  x = build.relu(build.batch_norm(build.conv2d(x, "conv1", 16, kConv3x3), "bn1"));
  for (int stage = 0; stage < 3; ++stage) {
    for (int block = 0; block < blocks; ++block) {
      const std::string block_name = fmt::format("layer{}.{}", stage + 1, block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      x = basic_block(build, x, block_name, 16 << stage, stride);
    }
  }
  x = build.global_average_pool(x);
  return build.finish(add_classifier(build, x, "fc", input), input.loss());
}

constexpr std::int64_t kSmallestMap = 32;  // pixels; ResNet-50 halves the map five times
constexpr std::array kBlocksOfStage = {3, 4, 6, 3};
constexpr int kExpansion = 4;  // a bottleneck's output channels per channel of its 3x3 convolution

// How the bottlenecks of ResNet-50 differ between its versions.
struct Bottlenecks {
  std::string_view network;
  bool strides_first = false;  // the stride is in the first 1x1 convolution, not in the 3x3 one
  bool bias = false;           // convolutions have biases
  BatchNormOp batch_norm = {};
};
constexpr Bottlenecks kTorchvision = {.network = "resnet50"};
// The momentum is 0.99 in Keras's terms: the part of the old value that stays.
constexpr Bottlenecks kKeras = {.network = "resnet50-v1",
                                .strides_first = true,
                                .bias = true,
                                .batch_norm = {.epsilon = 1.001e-5F, .momentum = 0.01F}};

NodeId bottleneck(GraphBuilder& build, NodeId x, const std::string& name, int channels, int stride,
                  bool projects, const Bottlenecks& kind) {
  const auto pointwise = [&](int by) {
    return Conv2dOp{.kernel_h = 1, .kernel_w = 1, .stride = by, .bias = kind.bias};
  };
  const int first_stride = kind.strides_first ? stride : 1;
  NodeId y = build.conv2d(x, name + ".conv1", channels, pointwise(first_stride));
  y = build.relu(build.batch_norm(y, name + ".bn1", kind.batch_norm));
  y = build.conv2d(y, name + ".conv2", channels,
                   {.stride = stride / first_stride, .pad = 1, .bias = kind.bias});
  y = build.relu(build.batch_norm(y, name + ".bn2", kind.batch_norm));
  y = build.conv2d(y, name + ".conv3", kExpansion * channels, pointwise(1));
  y = build.batch_norm(y, name + ".bn3", kind.batch_norm);
  NodeId skip = x;
  if (projects) {
    skip = build.conv2d(x, name + ".downsample.0", kExpansion * channels, pointwise(stride));
    skip = build.batch_norm(skip, name + ".downsample.1", kind.batch_norm);
  }
  return build.relu(build.add(y, skip));
}

Graph resnet_of_bottlenecks(const Bottlenecks& kind, const NetworkInput& input) {
  const Shape& sample = input.sample_shape;
  if (sample.size() == 3 && (sample[0] < kSmallestMap || sample[1] < kSmallestMap)) {
    throw ShapeError(fmt::format(
        "{}: samples are {} (H, W, C); expected at least 32x32 (the network is made for "
        "224x224); choose resnet20 for smaller samples",
        kind.network, to_string(sample)));
  }
  GraphBuilder build{std::string(kind.network)};
  NodeId x = build.input(sample, input.input);
  x = build.conv2d(x, "conv1", 64,
                   {.kernel_h = 7, .kernel_w = 7, .stride = 2, .pad = 3, .bias = kind.bias});
  x = build.relu(build.batch_norm(x, "bn1", kind.batch_norm));
  // Keras pads by zeros, which never exceed what a ReLU gives.
  x = build.max_pool(x, {.window = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < kBlocksOfStage.size(); ++stage) {
    for (int block = 0; block < kBlocksOfStage[stage]; ++block) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      x = bottleneck(build, x, name, 64 << stage, stride, block == 0, kind);
    }
  }
  x = build.global_average_pool(x);
  return build.finish(add_classifier(build, x, "fc", input), input.loss());
}

}  // namespace

Graph resnet20(const NetworkInput& input) { return resnet_cifar("resnet20", 3, input); }
Graph resnet56(const NetworkInput& input) { return resnet_cifar("resnet56", 9, input); }
Graph resnet50(const NetworkInput& input) { return resnet_of_bottlenecks(kTorchvision, input); }
Graph resnet50_v1(const NetworkInput& input) { return resnet_of_bottlenecks(kKeras, input); }

}  // namespace syncopate
