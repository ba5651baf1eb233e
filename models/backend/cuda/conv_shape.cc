#include "models/backend/cuda/conv_shape.h"

#include <algorithm>
#include <variant>

namespace syncopate::cuda {
namespace {

constexpr int kBlock = 2;
constexpr int kMostFoldedChannels = 16;

const Shape& input_shape(const Graph& graph, const Node& conv) {
  return graph.nodes[static_cast<std::size_t>(conv.inputs[0])].shape;
}

int round_up(int number, int multiple) { return (number + multiple - 1) / multiple * multiple; }

// Returns the number of channels with which cuDNN convolves maps of few channels best. In 16 bits
// it would pad them itself in every call, or have no suitable kernel.
int padded_channels(int channels, Precision type) {
  if (type == Precision::kF16) return std::max(channels, 4);
  if (type == Precision::kBf16) return std::max(channels, 8);
  return channels;
}

// Returns a convolution if the samples of `input` may be folded for it, or null.
const Node* convolution_to_fold_for(const Graph& graph, NodeId input, Precision precision) {
  const Node* reader = nullptr;
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.inputs, input) == node.inputs.end()) continue;
    if (reader != nullptr) return nullptr;
    reader = &node;
  }
  const auto* op = reader == nullptr ? nullptr : std::get_if<Conv2dOp>(&reader->operation);
  if (op == nullptr) return nullptr;
  const auto channels = input_shape(graph, *reader).back();
  const bool suits = precision == Precision::kBf16 && op->stride == kBlock && op->groups == 1 &&
                     channels * kBlock * kBlock <= kMostFoldedChannels;
  return suits ? reader : nullptr;
}

}  // namespace

std::optional<FoldShape> sample_fold(const Graph& graph, NodeId input, std::int64_t n,
                                     Precision precision) {
  const Shape& shape = graph.nodes[static_cast<std::size_t>(input)].shape;
  if (shape.size() != 3) return std::nullopt;  // an input that no layer reads
  FoldShape fold{.n = n,
                 .height = static_cast<int>(shape[0]),
                 .width = static_cast<int>(shape[1]),
                 .channels = static_cast<int>(shape[2])};
  const Node* const conv = convolution_to_fold_for(graph, input, precision);
  if (conv == nullptr) {
    fold.y_height = fold.height;
    fold.y_width = fold.width;
    fold.y_channels = padded_channels(fold.channels, precision);
    if (fold.y_channels == fold.channels) return std::nullopt;
    return fold;
  }
  // The padding is written as whole blocks: weight_fold() shifts the weights by what is too much.
  const Padding& pad = std::get<Conv2dOp>(conv->operation).pad;
  fold.block = kBlock;
  fold.top = round_up(pad.top, kBlock);
  fold.left = round_up(pad.left, kBlock);
  fold.y_channels = round_up(kBlock * kBlock * fold.channels, 8);
  const FoldShape weights = weight_fold(graph, *conv, fold);
  fold.y_height = static_cast<int>(conv->shape[0]) - 1 + weights.y_height;
  fold.y_width = static_cast<int>(conv->shape[1]) - 1 + weights.y_width;
  return fold;
}

FoldShape weight_fold(const Graph& graph, const Node& conv, const FoldShape& samples) {
  const auto& op = std::get<Conv2dOp>(conv.operation);
  FoldShape fold{.n = conv.shape.back(),
                 .height = op.kernel_h,
                 .width = op.kernel_w,
                 .channels = static_cast<int>(input_shape(graph, conv).back()),
                 .block = samples.block,
                 .y_channels = samples.y_channels};
  if (samples.block > 1) {
    fold.top = samples.top - op.pad.top;
    fold.left = samples.left - op.pad.left;
  }
  fold.y_height = round_up(fold.top + fold.height, fold.block) / fold.block;
  fold.y_width = round_up(fold.left + fold.width, fold.block) / fold.block;
  return fold;
}

ConvShape conv_shape(const Graph& graph, const Node& conv, std::int64_t n, Precision precision,
                     const FoldShape* samples) {
  const auto& op = std::get<Conv2dOp>(conv.operation);
  const Shape& in = input_shape(graph, conv);
  ConvShape shape{.n = n,
                  .height = in[0],
                  .width = in[1],
                  .channels = in[2],
                  .out_channels = conv.shape[2],
                  .kernel_h = op.kernel_h,
                  .kernel_w = op.kernel_w,
                  .stride = op.stride,
                  .pad = op.pad,
                  .type = precision,
                  .groups = op.groups};
  if (samples == nullptr) return shape;
  const FoldShape weights = weight_fold(graph, conv, *samples);
  shape.height = samples->y_height;
  shape.width = samples->y_width;
  shape.channels = samples->y_channels;
  shape.kernel_h = weights.y_height;
  shape.kernel_w = weights.y_width;
  shape.stride /= samples->block;
  if (samples->block > 1) shape.pad = 0;
  return shape;
}

}  // namespace syncopate::cuda
