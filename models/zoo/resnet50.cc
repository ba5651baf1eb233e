// The residual network of 50 layers for large images, with the names and the order of parameters
// that torchvision gives it. Source: He et al. 2016, table 1; the stride of a bottleneck is in its
// 3x3 convolution ("v1.5"), which costs more and classifies better than in the first 1x1.
#include <array>
#include <string>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

constexpr std::int64_t kSmallestMap = 32;  // the stem and the stages halve it five times
constexpr std::array kBlocksOfStage = {3, 4, 6, 3};
constexpr int kExpansion = 4;  // channels out of a bottleneck, of those of its 3x3

Conv2dOp pointwise(int stride) { return {.kernel_h = 1, .kernel_w = 1, .stride = stride}; }

NodeId bottleneck(GraphBuilder& build, NodeId x, const std::string& name, int channels, int stride,
                  bool projects) {
  NodeId y = build.conv2d(x, name + ".conv1", channels, pointwise(1));
  y = build.relu(build.batch_norm(y, name + ".bn1"));
  y = build.conv2d(y, name + ".conv2", channels, {.stride = stride, .pad = 1});
  y = build.relu(build.batch_norm(y, name + ".bn2"));
  y = build.conv2d(y, name + ".conv3", kExpansion * channels, pointwise(1));
  y = build.batch_norm(y, name + ".bn3");
  NodeId skip = x;
  if (projects) {
    skip = build.conv2d(x, name + ".downsample.0", kExpansion * channels, pointwise(stride));
    skip = build.batch_norm(skip, name + ".downsample.1");
  }
  return build.relu(build.add(y, skip));
}

}  // namespace

Graph resnet50(const NetworkInput& input) {
  const Shape& sample = input.sample_shape;
  if (sample.size() == 3 && (sample[0] < kSmallestMap || sample[1] < kSmallestMap)) {
    throw ShapeError("resnet50: samples are " + to_string(sample) +
                     " (H, W, C); expected 32x32 at least, made for 224x224; for smaller ones " +
                     "take resnet20");
  }
  GraphBuilder build("resnet50");
  NodeId x = build.input(sample, input.input);
  x = build.conv2d(x, "conv1", 64, {.kernel_h = 7, .kernel_w = 7, .stride = 2, .pad = 3});
  x = build.relu(build.batch_norm(x, "bn1"));
  x = build.max_pool(x, {.window = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < kBlocksOfStage.size(); ++stage) {
    for (int block = 0; block < kBlocksOfStage[stage]; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      x = bottleneck(build, x, name, 64 << stage, stride, block == 0);
    }
  }
  x = build.global_average_pool(x);
  return build.finish(build.dense(x, "fc", input.classes));
}

}  // namespace syncopate
