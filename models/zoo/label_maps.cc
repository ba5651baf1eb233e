// Networks that give a class for each pixel of a sample.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

// Throws ShapeError unless a network that halves the map four times and doubles it as often can
// give the targets of the data.
void require_label_maps(const NetworkInput& input, std::string_view network) {
  constexpr std::int64_t kMultiple = 16;
  const Shape& sample = input.sample_shape;
  if (input.target_shape.size() != 2) {
    throw ShapeError(fmt::format(
        "{} gives a class for each pixel, and the data have one for each sample; choose mnist-cnn "
        "or resnet20",
        network));
  }
  if (!input.head.empty()) {
    throw ShapeError(
        fmt::format("{} has no dense layer for --head to stand before; leave it out", network));
  }
  if (sample.size() != 3 || sample[0] % kMultiple != 0 || sample[1] % kMultiple != 0) {
    throw ShapeError(fmt::format(
        "{}: samples are {} (H, W, C); expected a height and a width that are multiples of 16",
        network, to_string(sample)));
  }
}

// Adds the two convolutions, each with batch norm and ReLU, of a level of U-Net.
NodeId double_convolution(GraphBuilder& build, NodeId x, const std::string& name, int channels) {
  for (const int layer : {0, 3}) {
    x = build.conv2d(x, fmt::format("{}.double_conv.{}", name, layer), channels, {.pad = 1});
    x = build.relu(build.batch_norm(x, fmt::format("{}.double_conv.{}", name, layer + 1)));
  }
  return x;
}

}  // namespace

Graph fcn(const NetworkInput& input) {
  require_label_maps(input, "fcn");
  constexpr Padding kSame{0, 0, 1, 1};  // of TensorFlow, for stride 2 and a map of even size
  constexpr std::array kDown = {16, 32, 64, 64};
  constexpr std::array kUp = {64, 32, 16};
  GraphBuilder build("fcn");
  NodeId x = build.input(input.sample_shape, input.input);
  std::array<NodeId, kDown.size()> maps{};
  for (std::size_t i = 0; i < kDown.size(); ++i) {
    x = build.relu(build.conv2d(x, fmt::format("conv{}", i + 1), kDown[i],
                                {.stride = 2, .pad = kSame, .bias = true}));
    maps[i] = x;
  }
  const ConvTranspose2dOp doubles{.pad = kSame, .bias = true};
  for (std::size_t i = 0; i < kUp.size(); ++i) {
    x = build.relu(build.conv_transpose2d(x, fmt::format("tconv{}", i + 1), kUp[i], doubles));
    x = build.add(x, maps[kDown.size() - 2 - i]);
  }
  return build.finish(build.conv_transpose2d(x, "tconv4", input.classes, doubles));
}

Graph unet(const NetworkInput& input) {
  require_label_maps(input, "unet");
  constexpr int kLevels = 4;
  constexpr int kChannels = 64;  // of the first level; each level doubles them
  GraphBuilder build("unet");
  NodeId x =
      double_convolution(build, build.input(input.sample_shape, input.input), "inc", kChannels);
  std::array<NodeId, kLevels> maps{};
  for (int level = 1; level <= kLevels; ++level) {
    maps[static_cast<std::size_t>(level) - 1] = x;
    x = double_convolution(build, build.max_pool(x), fmt::format("down{}.maxpool_conv.1", level),
                           kChannels << level);
  }
  for (int level = 1; level <= kLevels; ++level) {
    const std::string name = fmt::format("up{}", level);
    const int channels = kChannels << (kLevels - level);
    x = build.conv_transpose2d(x, name + ".up", channels,
                               {.kernel_h = 2, .kernel_w = 2, .bias = true});
    x = build.concat({maps[static_cast<std::size_t>(kLevels - level)], x});
    x = double_convolution(build, x, name + ".conv", channels);
  }
  return build.finish(
      build.conv2d(x, "outc.conv", input.classes, {.kernel_h = 1, .kernel_w = 1, .bias = true}));
}

}  // namespace syncopate
