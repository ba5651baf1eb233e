#include "models/graph/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

Graph network(std::string_view name) {
  const auto row = std::ranges::find(networks(), name, &NetworkRow::name);
  return build_network(name, {.sample_shape = {64, 64, 3},
                              .classes = 7,
                              .input = {DType::kU8, {0.485F, 0.456F, 0.1F}, {0.229F, 0.3F, 1.0F}},
                              .target_shape = row->labels_pixels ? Shape{64, 64} : Shape{}});
}

// The text of a small network, which the tests damage.
std::string small() {
  GraphBuilder build("small");
  NodeId x = build.input({4, 4, 2}, {.dtype = DType::kF32}, "image");
  x = build.add(x, build.relu(x));
  return to_text(build.finish(build.dense(build.flatten(x), "fc", 3)));
}

std::string with(std::string text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before << " in " << text;
  return text.replace(at, before.size(), after);
}

TEST(ANetworksText, IsReadableJson) {
  EXPECT_EQ(small(),
            R"({"name":"small","nodes":[)"
            R"({"op":"input","shape":[4,4,2],"dtype":"f32","mean":[0.0,0.0],"stddev":[1.0,1.0],)"
            R"("name":"image","inputs":[]},{"op":"relu","inputs":[0]},)"
            R"({"op":"add","inputs":[0,1]},{"op":"flatten","inputs":[2]},)"
            R"({"op":"dense","features":3,"init":"glorot-uniform","name":"fc","inputs":[3]},)"
            R"({"op":"softmax-cross-entropy","inputs":[4]}]})");
}

TEST(ANetworksText, NamesItsLoss) {
  for (const LossKind kind : {LossKind::kBinaryCrossEntropy, LossKind::kMeanSquaredError}) {
    GraphBuilder build("numbers");
    const Graph graph = build.finish(build.input({3}, {.dtype = DType::kF32}), {.kind = kind});
    const std::string text = to_text(graph);
    EXPECT_TRUE(contains(text, R"({"op":")" + std::string(name(kind)) + R"(","inputs":[0]}]})"));
    EXPECT_EQ(parse_graph(text).loss().kind, kind);
    EXPECT_THROW((void)parse_graph(
                     with(text, R"("inputs":[0]}])", R"("inputs":[0],"label_smoothing":0.1}])")),
                 UsageError);
  }
}

TEST(ANetworksText, BuildsTheSameNetworkAgain) {
  for (const NetworkRow& row : networks()) {
    const Graph graph = network(row.name);
    const Graph again = parse_graph(to_text(graph));
    EXPECT_EQ(to_text(again), to_text(graph));
    EXPECT_EQ(again.name, graph.name);
    ASSERT_EQ(again.nodes.size(), graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      EXPECT_EQ(again.nodes[i].shape, graph.nodes[i].shape);
      EXPECT_EQ(again.nodes[i].parameters, graph.nodes[i].parameters);
      EXPECT_EQ(again.nodes[i].state, graph.nodes[i].state);
    }
    ASSERT_EQ(again.parameters.size(), graph.parameters.size());
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
      const Parameter& expected = graph.parameters[p];
      const Parameter& found = again.parameters[p];
      EXPECT_EQ(found.name, expected.name);
      EXPECT_EQ(found.shape, expected.shape);
      EXPECT_EQ(found.file_shape, expected.file_shape);
      EXPECT_EQ(found.file_axes, expected.file_axes);
      EXPECT_EQ(found.init, expected.init) << expected.name;
      EXPECT_EQ(found.fan_in, expected.fan_in);
      EXPECT_EQ(found.fan_out, expected.fan_out);
      EXPECT_EQ(found.decays, expected.decays);
    }
    const auto& input = std::get<InputOp>(again.first_input().operation);
    EXPECT_EQ(input.mean, std::get<InputOp>(graph.first_input().operation).mean);
    EXPECT_EQ(input.stddev, std::get<InputOp>(graph.first_input().operation).stddev);
  }
}

TEST(ANetworksText, HasTheSmoothingOfLabels) {
  Graph graph = network("mlp");
  graph.set_label_smoothing(0.1F);
  EXPECT_EQ(parse_graph(to_text(graph)).loss().label_smoothing, 0.1F);
  EXPECT_EQ(parse_graph(to_text(network("mlp"))).loss().label_smoothing, 0.0F);
  EXPECT_THROW((void)parse_graph(with(to_text(graph), "smoothing\":0.1", "smoothing\":1.5")),
               UsageError);
}

TEST(ANetworksText, IsRefusedWithTheNodeThatIsWrong) {
  const std::string text = small();
  for (const auto& [before, after] :
       std::vector<std::pair<std::string, std::string>>{{"\"relu\"", "\"mish\""},
                                                        {"[0,1]", "[0]"},
                                                        {"[0,1]", "[0,2]"},
                                                        {"[0,1]", "[0,-1]"},
                                                        {"\"features\":3", "\"features\":0"},
                                                        {"\"features\":3", "\"features\":3e18"},
                                                        {"\"features\":3", "\"features\":\"3\""},
                                                        {"glorot", "other"},
                                                        {"\"f32\"", "\"f31\""},
                                                        {"[4,4,2]", "[4,4,2,2]"},
                                                        {"[4,4,2]", "[4,99999999,2]"},
                                                        {"\"stddev\":[1.0", "\"stddev\":[0.0"},
                                                        {"\"name\":\"fc\",", ""}}) {
    try {
      (void)parse_graph(with(text, before, after));
      ADD_FAILURE() << before << " -> " << after;
    } catch (const UsageError& error) {
      EXPECT_TRUE(contains(error.what(), "node "));
    } catch (const ShapeError&) {
    }
  }
  EXPECT_THROW((void)parse_graph(with(text, "softmax-cross-entropy", "hinge")), UsageError);
  EXPECT_THROW((void)parse_graph(with(text, "[4]}]", "[5]}]")), UsageError);
}

TEST(ANetworksText, IsRefusedOrReadWhereverItIsCut) {
  const std::string text = small();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW((void)parse_graph(text.substr(0, length)), UsageError) << length;
  }
}

TEST(ANetworksText, HasAHashThatChangesWithIt) {
  EXPECT_EQ(network_hash(small()), network_hash(small()));
  EXPECT_NE(network_hash(small()), network_hash(with(small(), "[0,1]", "[0,0]")));
  EXPECT_EQ(network_hash(small()).size(), 16U);
}

}  // namespace
}  // namespace syncopate
