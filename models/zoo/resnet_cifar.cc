// The thin residual networks for small images. Source: He et al. 2016, section 4.2.
#include <string>

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

// Three stages of `blocks` blocks with 16, 32 and 64 channels: depth 6 * blocks + 2.
Graph resnet_cifar(std::string name, int blocks, const NetworkInput& input) {
  GraphBuilder build(std::move(name));
  NodeId x = build.input(input.sample_shape, input.input);
  x = build.relu(build.batch_norm(build.conv2d(x, "conv1", 16, kConv3x3), "bn1"));
  for (int stage = 0; stage < 3; ++stage) {
    for (int block = 0; block < blocks; ++block) {
      const std::string block_name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      x = basic_block(build, x, block_name, 16 << stage, stride);
    }
  }
  x = build.global_average_pool(x);
  return build.finish(build.dense(x, "fc", input.classes));
}

}  // namespace

Graph resnet20(const NetworkInput& input) { return resnet_cifar("resnet20", 3, input); }
Graph resnet56(const NetworkInput& input) { return resnet_cifar("resnet56", 9, input); }

}  // namespace syncopate
