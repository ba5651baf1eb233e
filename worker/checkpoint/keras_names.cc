// Keras's names of the tensors of resnet50-v1. weights_file.cc accepts these names in addition to
// PyTorch's names, which checkpoints have. Source: keras/src/applications/resnet.py, ResNet50.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#include "worker/checkpoint/tensor_names.h"

namespace syncopate {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// Names of layers in a block: ours, then Keras's behind "conv2_block1_".
constexpr std::array kLayersOfBlock = {
    Pair{"conv1", "1_conv"},        Pair{"bn1", "1_bn"},
    Pair{"conv2", "2_conv"},        Pair{"bn2", "2_bn"},
    Pair{"conv3", "3_conv"},        Pair{"bn3", "3_bn"},
    Pair{"downsample.0", "0_conv"}, Pair{"downsample.1", "0_bn"}};
constexpr std::array kLayersOutside = {Pair{"conv1", "conv1_conv"}, Pair{"bn1", "conv1_bn"},
                                       Pair{"fc", "predictions"}};
constexpr std::array kTensors = {Pair{"weight", "kernel"}, Pair{"bias", "bias"}};
constexpr std::array kBatchNormTensors = {Pair{"weight", "gamma"}, Pair{"bias", "beta"},
                                          Pair{"running_mean", "moving_mean"},
                                          Pair{"running_var", "moving_variance"}};

std::string_view second_of(std::span<const Pair> pairs, std::string_view first) {
  const auto found = std::ranges::find(pairs, first, &Pair::first);
  return found == pairs.end() ? std::string_view() : found->second;
}

// Returns the number at the front of the text and the text behind it and a dot; -1 without one.
std::pair<int, std::string_view> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || used >= text.size() || text[used] != '.') return {-1, {}};
  return {number, text.substr(used + 1)};
}

// Returns Keras's name of a layer, such as "conv2_block1_1_conv"; "" when it has none.
std::string keras_layer(std::string_view layer) {
  constexpr std::string_view kStage = "layer";
  if (!layer.starts_with(kStage)) return std::string(second_of(kLayersOutside, layer));
  const auto [stage, behind_stage] = leading_number(layer.substr(kStage.size()));
  const auto [block, in_block] = leading_number(behind_stage);
  const std::string_view name = second_of(kLayersOfBlock, in_block);
  if (stage < 0 || block < 0 || name.empty()) return "";
  return fmt::format("conv{}_block{}_{}", stage + 1, block + 1, name);
}

}  // namespace

bool has_keras_names(std::string_view network) { return network == "resnet50-v1"; }

std::string keras_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string layer = keras_layer(name.substr(0, dot));
  const std::string_view tensor =
      second_of(layer.ends_with("bn") ? std::span<const Pair>(kBatchNormTensors) : kTensors,
                name.substr(dot + 1));
  if (layer.empty() || tensor.empty()) return "";
  return fmt::format("{}/{}", layer, tensor);
}

}  // namespace syncopate
