// Tests the nodes that enlarge, reshape and multiply maps, and functions with numbers of their own:
// their shapes, their text, and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

class AxisNodes : public testing::Test {
 protected:
  GraphBuilder build_{"test"};
  NodeId x_ = build_.input({7, 5, 4}, {});

  const Shape& shape(NodeId node) const { return build_.shape(node); }
  static std::string error_of(const std::function<void()>& add) {
    return message_of<ShapeError>([&] { add(); });
  }
};

TEST_F(AxisNodes, HaveTheShapesOfTheirOperations) {
  EXPECT_EQ(shape(build_.upsample2d(x_, {.scale = 3})), (Shape{21, 15, 4}));
  EXPECT_EQ(shape(build_.slice(x_, 1, 3)), (Shape{7, 5, 3}));
  EXPECT_EQ(shape(build_.softmax(x_)), (Shape{7, 5, 4}));
  EXPECT_EQ(shape(build_.reshape(x_, {10, 2, 7})), (Shape{10, 2, 7}));
  EXPECT_EQ(shape(build_.reshape(x_, {140})), Shape{140});
  EXPECT_EQ(shape(build_.transpose(x_, {2, 0, 1})), (Shape{4, 7, 5}));
  EXPECT_EQ(shape(build_.reduce_mean(x_, std::array{0, 2})), (Shape{1, 5, 1}));
  EXPECT_EQ(shape(build_.reduce_mean(build_.flatten(x_), std::array{0})), Shape{1});
  const NodeId product = build_.matmul(x_, build_.transpose(x_, {0, 2, 1}));
  EXPECT_EQ(shape(product), (Shape{7, 5, 5}));
  const Graph graph = build_.finish(product);
  EXPECT_EQ(multiply_adds_of(graph, graph.nodes[static_cast<std::size_t>(product)]), 7 * 5 * 5 * 4);
}

TEST_F(AxisNodes, MultiplyAMapByTheFactorsOfItsChannelsInEitherOrder) {
  const NodeId vector = build_.global_average_pool(x_);
  const NodeId pixel = build_.reduce_mean(x_, std::array{0, 1});
  for (const NodeId factors : {vector, pixel}) {
    EXPECT_EQ(shape(build_.multiply(x_, factors)), (Shape{7, 5, 4}));
    EXPECT_EQ(shape(build_.multiply(factors, x_)), (Shape{7, 5, 4}));
  }
  EXPECT_THROW(build_.add(x_, vector), ShapeError);
  EXPECT_THROW(build_.multiply(x_, build_.reduce_mean(x_, std::array{0})), ShapeError);
  // A vector that was a map has another order in files than its channels.
  const NodeId wide = build_.conv2d(x_, "wide", 140, {.kernel_h = 1, .kernel_w = 1});
  EXPECT_THROW(build_.multiply(wide, build_.flatten(x_)), ShapeError);
  EXPECT_NO_THROW(build_.multiply(wide, build_.reshape(x_, {140})));
}

TEST_F(AxisNodes, AreReadBackFromTheirText) {
  NodeId y = build_.upsample2d(x_, {.scale = 2, .mode = Interpolation::kBilinear});
  y = build_.clip(build_.linear(build_.softmax(y), -0.25F, 0.1F), -1e-3F, 0.7F);
  y = build_.leaky_relu(y, 0.3F);
  y = build_.activation(build_.reshape(y, {7, 20, 4}), Activation::kHardSigmoid);
  y = build_.slice(y, 1, 2);
  y = build_.matmul(build_.transpose(y, {0, 2, 1}), y);
  y = build_.multiply(y, build_.reduce_mean(y, std::array{0, 1}));
  const Graph graph = build_.finish(build_.flatten(build_.reduce_mean(y, std::array{2})));
  const std::string text = to_text(graph);
  EXPECT_EQ(to_text(parse_graph(text)), text);
  for (const char* const part :
       {R"({"op":"upsample2d","scale":2,"mode":"bilinear",)", R"({"op":"linear","factor":-0.25,)",
        R"("offset":0.1,)", R"({"op":"clip","low":-0.001,"high":0.7,)", R"({"op":"softmax",)",
        R"({"op":"leaky_relu","slope":0.3,)", R"({"op":"reshape","shape":[7,20,4],)",
        R"({"op":"slice","first":1,"count":2,)", R"({"op":"hard-sigmoid",)",
        R"({"op":"transpose","order":[0,2,1],)", R"({"op":"reduce_mean","axes":[0,1],)"}) {
    EXPECT_TRUE(contains(text, part)) << part << " in " << text;
  }
}

// The elements of a reshape have one order, so its weight has the columns of memory in files.
TEST_F(AxisNodes, GiveADenseLayerBehindAReshapeTheOrderOfMemoryInFiles) {
  const NodeId reshaped = build_.relu(build_.reshape(x_, {140}));
  const Graph graph = build_.finish(build_.dense(reshaped, "fc", 3));
  EXPECT_EQ(graph.parameters[0].file_axes, (std::array<std::int64_t, 4>{}));
}

TEST_F(AxisNodes, RefuseWhatDoesNotFit) {
  const NodeId vector = build_.flatten(x_);
  EXPECT_EQ(error_of([&] { build_.upsample2d(x_, {.scale = 1}); }),
            "upsample2d: found a scale of 1; expected 2 to 128");
  EXPECT_EQ(error_of([&] { build_.upsample2d(vector); }),
            "upsample2d: expected a map [H, W, C], found [140]");
  EXPECT_EQ(error_of([&] {
              build_.reshape(x_, {7, 5, 5});
            }),
            "reshape: found [7, 5, 4] to become [7, 5, 5]; expected [H, W, C] or [F] with as many "
            "elements");
  EXPECT_EQ(error_of([&] { build_.slice(x_, 2, 3); }),
            "slice: found 3 channels from 2 on of [7, 5, 4]; expected some of them");
  EXPECT_THROW(build_.slice(x_, -1, 2), ShapeError);
  EXPECT_THROW(build_.slice(x_, 0, 0), ShapeError);
  // Of which order?
  EXPECT_THROW(build_.slice(vector, 0, 9), ShapeError);
  EXPECT_THROW(build_.reshape(vector, {7, 5, 4}), ShapeError);
  EXPECT_EQ(error_of([&] { build_.reshape(build_.relu(vector), {140}); }),
            "reshape: found a flattened map, whose elements have the order H, W, C here and C, H, "
            "W in PyTorch; put a dense layer or global_average_pool behind the map, or reshape it "
            "in place of flatten");
  const std::int64_t large = std::int64_t{1} << 31;
  for (const Shape& shape :
       {Shape{140, 1}, Shape{}, Shape{0, 5, 4}, Shape{-7, -5, 4}, Shape{large, large, 4}}) {
    EXPECT_THROW(build_.reshape(x_, shape), ShapeError) << to_string(shape);
  }
  EXPECT_EQ(error_of([&] {
              build_.transpose(x_, {0, 1, 1});
            }),
            "transpose: found the order 0, 1, 1; expected each of 0, 1, 2 once");
  EXPECT_EQ(error_of([&] { build_.reduce_mean(x_, std::array{3}); }),
            "reduce_mean: found the axis 3 of [7, 5, 4]; expected 0 to 2");
  EXPECT_EQ(error_of([&] { build_.reduce_mean(x_, {}); }),
            "reduce_mean: found no axes; expected one or more");
  EXPECT_EQ(error_of([&] { build_.matmul(x_, x_); }),
            "matmul: found [7, 5, 4] and [7, 5, 4]; expected [B, M, K] and [B, K, N]");
  EXPECT_EQ(error_of([&] { build_.clip(x_, 1.0F, 1.0F); }),
            "clip: found the bounds 1 and 1; expected the lower one first");
}

TEST_F(AxisNodes, AreRefusedWithWrongFieldsOfAFile) {
  const NetworkInput data{
      .sample_shape = {8, 8, 2}, .classes = 7, .input = {DType::kU8, {0.0F, 0.0F}, {1.0F, 1.0F}}};
  const auto error_for = [&](const std::string& node) {
    const std::string text = "{\"name\": \"n\", \"nodes\": [{\"op\": \"input\"}," + node +
                             R"(,{"op": "flatten"},
          {"op": "dense", "name": "fc", "features": "classes"},
          {"op": "softmax-cross-entropy"}]})";
    try {
      (void)parse_network_file(text, "net.json", data);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_for(R"({"op": "upsample2d"})"), "");
  EXPECT_EQ(error_for(R"({"op": "upsample2d", "mode": "cubic"})"),
            "net.json:1: node 1 (upsample2d): the mode 'cubic' is not known; choose nearest or "
            "bilinear");
  EXPECT_EQ(error_for(R"({"op": "clip", "low": 0})"),
            "net.json:1: node 1 (clip): 'low' or 'high' is missing; expected both bounds");
  EXPECT_EQ(error_for(R"({"op": "transpose", "order": [0, 1]})"),
            "net.json:1: node 1 (transpose): 'order' has not the 3 axes of a map, such as [1, 0, "
            "2]");
  EXPECT_EQ(error_for(R"({"op": "reduce_mean", "axes": [1, 1]})"),
            "net.json:1: node 1 (reduce_mean): 'axes' has the axis 1 twice");
  EXPECT_EQ(error_for(R"({"op": "reduce_mean", "axes": [3]})"),
            "net.json:1: node 1 (reduce_mean): 'axes' is 3; expected a whole number from 0 to 2");
  EXPECT_EQ(error_for(R"({"op": "reshape", "shape": [1, 2, 3, 4]})"),
            "net.json:1: node 1 (reshape): 'shape' has more than 3 sides");
}

}  // namespace
}  // namespace syncopate
