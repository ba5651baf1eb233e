// Layers that read elements of one stored tensor: disjoint parts are weights of their own, and a
// shared kernel is refused.
#include <gtest/gtest.h>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

class APartOfAnOnnxTensor : public AnOnnxNetwork {
 protected:
  // Two dense layers of 4 features without nodes between a tensor [8, 4] and their weights.
  static OnnxModel model() {
    OnnxModel model({0, 4});
    model.weights("all", {8, 4});
    return model;
  }
  // Adds rows `begin` to `end` of a tensor.
  static void rows(OnnxModel& model, const std::string& name, const std::string& of,
                   std::int64_t begin, std::int64_t end, std::int64_t step = 1) {
    model.list(name + ".begin", {begin});
    model.list(name + ".end", {end});
    model.list(name + ".axis", {0});
    model.list(name + ".step", {step});
    model.node("Slice", name, {of, name + ".begin", name + ".end", name + ".axis", name + ".step"});
  }
  static void layers(OnnxModel& model, const std::string& one, const std::string& two) {
    model.node("MatMul", "first", {"x", one});
    model.last("MatMul", "second", {"first", two});
  }
  void expect_shared(const OnnxModel& model) const {
    EXPECT_TRUE(
        contains(error_of(model), "MatMul in node second with the tensor all of first, too"));
  }
};

TEST_F(APartOfAnOnnxTensor, IsAWeightOfItsOwnIfItIsDisjoint) {
  OnnxModel halves = model();
  rows(halves, "upper", "all", 0, 4);
  rows(halves, "lower", "all", 4, 8);
  layers(halves, "upper", "lower");
  ASSERT_EQ(error_of(halves), "");
  EXPECT_FLOAT_EQ(values(read(halves), "second.weight").at(0), 0.165F);  // that of row 4

  OnnxModel nested = model();
  rows(nested, "rest", "all", 2, 8);
  rows(nested, "upper", "rest", 0, 4);  // rows 2 to 6
  rows(nested, "lower", "all", -2, 8);
  nested.node("MatMul", "first", {"x", "upper"});
  nested.weights("narrow", {4, 2});
  nested.node("MatMul", "middle", {"first", "narrow"});
  nested.last("MatMul", "second", {"middle", "lower"});
  EXPECT_EQ(error_of(nested), "");
}

TEST_F(APartOfAnOnnxTensor, IsRefusedAsAWeightOfTwoLayers) {
  OnnxModel equal = model();
  rows(equal, "one", "all", 0, 4);
  rows(equal, "two", "all", 0, 4);
  layers(equal, "one", "two");
  expect_shared(equal);

  OnnxModel overlapping = model();
  rows(overlapping, "one", "all", 0, 4);
  rows(overlapping, "two", "all", 3, 7);
  layers(overlapping, "one", "two");
  expect_shared(overlapping);

  OnnxModel reversed = model();
  rows(reversed, "one", "all", 0, 4);
  rows(reversed, "two", "all", 6, 2, -1);  // rows 6 to 3
  layers(reversed, "one", "two");
  expect_shared(reversed);

  OnnxModel whole = model();
  rows(whole, "two", "all", 0, 4);
  whole.node("Transpose", "turned", {"all"});
  whole.node("MatMul", "first", {"x", "turned"});
  whole.weights("narrow", {8, 4});
  whole.node("MatMul", "middle", {"first", "narrow"});
  whole.last("MatMul", "second", {"middle", "two"});
  expect_shared(whole);
}

// Elements of a list, as a kernel of one column.
TEST_F(APartOfAnOnnxTensor, MayBeGathered) {
  const auto model_of = [](const std::vector<std::int64_t>& second) {
    OnnxModel model({0, 4});
    model.weights("all", {8});
    model.list("front", {0, 1, 2, 3});
    model.list("other", second);
    model.list("row", {1, 4});
    model.list("column", {4, 1});
    for (const std::string part : {"front", "other"}) {
      model.node("Gather", part + ".list", {"all", part});
      model.node("Reshape", part + ".kernel", {part + ".list", part == "front" ? "column" : "row"});
    }
    layers(model, "front.kernel", "other.kernel");
    return model;
  };
  EXPECT_EQ(error_of(model_of({4, 5, 6, 7})), "");
  expect_shared(model_of({3, 4, 5, 6}));
}

TEST_F(APartOfAnOnnxTensor, MayBeThatOfAConstantNode) {
  OnnxModel model({0, 4});
  TensorProto values = model.weights("values", {4, 4});
  model.message.mutable_graph()->clear_initializer();
  auto& attribute = *model.node("Constant", "all", {}).add_attribute();
  attribute.set_name("value");
  attribute.set_type(4);
  *attribute.mutable_t() = values;
  model.node("Identity", "same", {"all"});
  layers(model, "all", "same");
  expect_shared(model);
}

// Concat of one list is the list.
TEST_F(APartOfAnOnnxTensor, IsNotedAsABiasOfTwoLayers) {
  OnnxModel model({0, 4});
  model.weights("w1", {4, 4});
  model.weights("w2", {4, 4});
  model.weights("all", {4});
  set(model.node("Concat", "same", {"all"}), "axis", 0);
  model.node("Gemm", "first", {"x", "w1", "all"});
  model.last("Gemm", "second", {"first", "w2", "same"});
  const OnnxNetwork network = read(model);
  ASSERT_EQ(network.notes.size(), 1U);
  EXPECT_TRUE(contains(network.notes[0], "are trained apart: second"));
}

}  // namespace
}  // namespace syncopate
