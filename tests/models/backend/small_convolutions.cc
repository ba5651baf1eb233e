// Networks of convolutions: kernels, strides and paddings, groups, transposed ones, and a ReLU and
// a pool behind them.
#include "tests/models/backend/small_networks.h"

namespace syncopate {
namespace {

NetworkBody conv(int channels, Conv2dOp operation) {
  return [=](GraphBuilder& b, NodeId x) { return b.conv2d(x, "conv", channels, operation); };
}
NetworkBody conv_relu_pool(int channels, Conv2dOp operation, MaxPoolOp pool = {}) {
  return [=](GraphBuilder& b, NodeId x) {
    return b.max_pool(b.relu(b.conv2d(x, "conv", channels, operation)), pool);
  };
}

// Appends convolutions of groups: depthwise ones, groups that fill blocks of channels, groups that
// are joined, and groups of the samples.
void append_groups(std::vector<SmallNetwork>& all) {
  const auto append = [&](const std::string& name, int in, int out, int groups,
                          Conv2dOp op = {.pad = 1}) {
    op.groups = groups;
    append_map(all, name, {7, 8, 3}, [=](GraphBuilder& b, NodeId x) {
      x = b.relu(b.conv2d(x, "conv0", in, {.pad = 1, .bias = true}));
      return b.relu(b.conv2d(x, "conv1", out, op));
    });
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
  append_map(all, "DepthwiseOfTheInput", {6, 7, 3}, conv_relu(3, of_samples));
  append_map(all, "GroupsOfTheInput", {6, 7, 3}, conv_relu_pool(12, of_samples));
}

void append_transposed(std::vector<SmallNetwork>& all) {
  const auto append = [&](const std::string& name, int in, int out, ConvTranspose2dOp op) {
    append_map(all, name, {5, 4, 3}, [=](GraphBuilder& b, NodeId x) {
      x = b.relu(b.conv2d(x, "conv0", in, {.pad = 1, .bias = true}));
      return b.relu(b.conv_transpose2d(x, "up", out, op));
    });
  };
  append("Transposed16To16", 16, 16, {.pad = {0, 0, 1, 1}, .bias = true});
  append("Transposed20To3", 20, 3, {.pad = {1, 1, 0, 0}, .bias = true});
  append("Transposed32To40Of2x2", 32, 40, {.kernel_h = 2, .kernel_w = 2});
  append("Transposed8To20Stride1", 8, 20, {.stride = 1, .pad = 1});
  append("Transposed6To6Of4x3", 6, 6, {.kernel_h = 4, .kernel_w = 3, .stride = 3, .pad = 1});
  append_map(all, "TransposedInput", {4, 3, 3}, [](GraphBuilder& b, NodeId x) {
    return b.conv_transpose2d(x, "up", 10, {.pad = 1, .bias = true});
  });
  append_map(all, "TransposedReadTwice", {4, 4, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv_transpose2d(b.conv2d(x, "conv0", 16, {.pad = 1}), "up", 20, {.pad = 1});
    return b.add(b.relu(x), x);
  });
}

}  // namespace

void append_convolutions(std::vector<SmallNetwork>& all) {
  const Conv2dOp valid{.bias = true};
  const Conv2dOp same{.pad = 1, .bias = true};
  const Conv2dOp same_plain{.pad = 1};
  const Conv2dOp pointwise{.kernel_h = 1, .kernel_w = 1, .bias = true};
  const Conv2dOp strided{.stride = 2, .pad = 1, .bias = true};
  append_map(all, "Conv5To24", {7, 6, 5}, conv(24, valid));
  append_map(all, "ConvWithoutBias", {8, 8, 16}, conv(16, same_plain));
  append_map(all, "ConvStride2On9x8", {9, 8, 3}, conv(10, strided));
  append_map(
      all, "Conv7x7Stride2", {11, 10, 3},
      conv(10, {.kernel_h = 7, .kernel_w = 7, .stride = 2, .pad = {3, 2, 3, 4}, .bias = true}));
  append_map(all, "ConvStride2On8x8", {8, 8, 16}, conv(32, strided));
  append_map(all, "Conv1x1", {5, 7, 20}, conv(24, pointwise));
  append_map(all, "Conv1x1Stride2", {7, 7, 16},
             conv(16, {.kernel_h = 1, .kernel_w = 1, .stride = 2}));
  append_map(all, "Conv5x3", {9, 8, 3},
             conv(10, {.kernel_h = 5, .kernel_w = 3, .pad = 2, .bias = true}));
  const Conv2dOp last_sides{.stride = 2, .pad = {0, 0, 1, 1}, .bias = true};
  append_map(all, "ConvPaddedAtLastSides", {8, 8, 16}, conv_relu(24, last_sides));
  append_map(all, "ConvPaddedAtLastSidesOfSamples", {8, 7, 3}, conv(10, last_sides));
  append_map(all, "ConvPaddedUnevenly", {7, 6, 5}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv1", 12, {.kernel_h = 5, .kernel_w = 3, .pad = {3, 1, 0, 2}});
    return b.conv2d(x, "conv2", 20, {.pad = {0, 2, 1, 0}, .bias = true});
  });
  // For these kernels oneDNN has only its reference code, on 16 and on 8 channels in a block.
  append_map(all, "Conv4x4OfFewChannels", {7, 6, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv1", 5, {.kernel_h = 1, .kernel_w = 1});
    return b.conv2d(x, "conv2", 3, {.kernel_h = 4, .kernel_w = 4, .pad = {3, 0, 3, 1}});
  });
  append_map(all, "Conv4x1OfFewRows", {3, 9, 3}, [](GraphBuilder& b, NodeId x) {
    x = b.conv2d(x, "conv1", 2, {.kernel_h = 1, .kernel_w = 1});
    return b.conv2d(x, "conv2", 5,
                    {.kernel_h = 4, .kernel_w = 1, .stride = 2, .pad = {1, 0, 1, 0}});
  });
  append_map(all, "ConvRelu20To24", {6, 9, 20}, conv_relu(24, same));
  append_map(all, "ConvRelu32To32", {8, 8, 32}, conv_relu(32, same));
  // The algorithm table lists ConvRelu64To64On8x8 and ConvTwice32On16x16, so they run with
  // Winograd.
  append_map(all, "ConvRelu64To64On8x8", {8, 8, 64}, conv_relu(64, same));
  append_map(all, "ConvTwice32On16x16", {16, 16, 3}, [=](GraphBuilder& b, NodeId x) {
    x = b.relu(b.conv2d(x, "conv1", 32, same));
    return b.relu(b.conv2d(x, "conv2", 32, same));
  });
  append_map(all, "ConvReluWithoutBias", {6, 6, 3}, conv_relu(10, same_plain));
  append_map(all, "ConvReluPoolGrey28x28", {28, 28, 1}, conv_relu_pool(10, valid));
  append_map(all, "ConvReluPoolGrey28x28To32", {28, 28, 1}, conv_relu_pool(32, valid));
  append_map(all, "ConvReluPoolGrey27x27", {27, 27, 1}, conv_relu_pool(24, valid));
  append_map(all, "ConvReluPoolGrey9x7", {9, 7, 1}, conv_relu_pool(16, same));
  append_map(all, "ConvReluPoolColour28x28", {28, 28, 3}, conv_relu_pool(16, valid));
  append_map(all, "ConvReluPoolColour27x27", {27, 27, 3}, conv_relu_pool(10, valid));
  append_map(all, "ConvReluPoolColour9x7", {9, 7, 3}, conv_relu_pool(24, valid));
  append_map(all, "ConvReluPoolOfThree", {11, 12, 1},
             conv_relu_pool(16, valid, {.window = 3, .stride = 3}));
  append_map(all, "ConvReluOverlappingPool", {11, 12, 3},
             conv_relu_pool(16, valid, {.window = 3, .stride = 2}));
  // These networks have padded pooling, on maps whose size is or is not a multiple of the stride.
  // There are many ties, because the ReLU's output has many zeros.
  const MaxPoolOp padded{.window = 3, .stride = 2, .pad = 1};
  append_map(all, "ConvReluPaddedPool9x8", {9, 8, 3}, conv_relu_pool(16, same, padded));
  append_map(all, "ConvReluPaddedPool8x7", {8, 7, 3}, conv_relu_pool(10, same, padded));
  append_map(all, "ConvReluPaddedPoolOfFive", {7, 6, 3},
             conv_relu_pool(24, same, {.window = 5, .stride = 1, .pad = 2}));
  append_map(all, "PaddedPoolOfOnePixel", {3, 3, 3}, conv_relu_pool(10, valid, padded));
  append_map(all, "ConvPoolWithoutRelu", {8, 9, 1},
             [=](GraphBuilder& b, NodeId x) { return b.max_pool(b.conv2d(x, "conv", 16, valid)); });
  append_map(all, "TwoConvReluPools", {15, 14, 1}, [=](GraphBuilder& b, NodeId x) {
    x = b.max_pool(b.relu(b.conv2d(x, "conv1", 16, valid)));
    return b.max_pool(b.relu(b.conv2d(x, "conv2", 24, same)));
  });
  append_groups(all);
  append_transposed(all);
}

}  // namespace syncopate
