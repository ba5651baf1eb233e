// Tests --strategy pipeline: where networks are cut, and that stages train what one device trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "models/base/errors.h"
#include "strategies/pipeline/stages.h"
#include "strategies/strategy.h"
#include "tests/strategies/pipeline_training.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

std::unique_ptr<Strategy> make(const Graph& graph, const std::string& name, int stages,
                               int micro_batches, int lanes = 1) {
  StrategyOptions options = pipeline_options(name, stages, micro_batches);
  options.lanes = lanes;
  return make_strategy(options, graph);
}

double relative_distance(const Tensor& found, const Tensor& expected) {
  double distance = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < expected.f32().size(); ++i) {
    const auto e = static_cast<double>(expected.f32()[i]);
    const double difference = static_cast<double>(found.f32()[i]) - e;
    distance += difference * difference;
    length += e * e;
  }
  return std::sqrt(distance / length);
}

using Case = std::tuple<std::string, int, int, int>;  // network, stages, micro-batches, lanes

class APipeline : public testing::TestWithParam<Case> {};

TEST_P(APipeline, TrainsWhatOneDeviceTrains) {
  const auto& [name, stages, micro_batches, lanes] = GetParam();
  const Graph graph = small_network(name);
  const Batch batch = batch_for(graph, kPipelineBatch);
  const auto pipeline = make(graph, "pipeline", stages, micro_batches, lanes);
  const auto one_device = make(graph, "one-device", 1, micro_batches, lanes);
  // Losses are added in double precision, in another order.
  EXPECT_DOUBLE_EQ(train_steps(*pipeline, batch, 3), train_steps(*one_device, batch, 3));
  // The same micro-batches are added in the same order, so the bits are equal.
  EXPECT_TRUE(are_equal(pipeline->snapshot().values, one_device->snapshot().values));
  EXPECT_TRUE(are_equal(pipeline->snapshot().state, one_device->snapshot().state));
}

INSTANTIATE_TEST_SUITE_P(Each, APipeline,
                         testing::Values(Case{"mlp", 2, 1, 1}, Case{"mlp", 2, 4, 1},
                                         Case{"mnist-cnn", 2, 1, 2}, Case{"mnist-cnn", 3, 1, 1},
                                         Case{"mnist-cnn", 2, 5, 1}, Case{"fcn", 2, 1, 1},
                                         Case{"fcn", 3, 4, 1}, Case{"resnet20", 2, 1, 1},
                                         Case{"resnet20", 3, 1, 2}, Case{"resnet20", 2, 3, 1}));

// Networks without batch norm do not depend on the number of micro-batches but for the order of
// additions.
TEST(APipelineOfMicroBatches, TrainsWhatAWholeBatchTrains) {
  for (const char* name : {"mlp", "mnist-cnn", "fcn"}) {
    const Graph graph = small_network(name);
    const Batch batch = batch_for(graph, kPipelineBatch);
    const auto pipeline = make(graph, "pipeline", 2, 4);
    const auto one_device = make(graph, "one-device", 1, 1);
    train_steps(*pipeline, batch, 10);
    train_steps(*one_device, batch, 10);
    // 1e-3: the bound of all synchronous strategies after 10 steps.
    EXPECT_LT(relative_distance(pipeline->snapshot().values, one_device->snapshot().values), 1e-3)
        << name;
  }
}

TEST(APipelineOfMicroBatches, TakesShortAndEmptyBatches) {
  const Graph graph = small_network("mnist-cnn");
  const auto pipeline = make(graph, "pipeline", 2, 4);
  const auto one_device = make(graph, "one-device", 1, 4);
  for (const std::int64_t samples : {5, 0, 12, 1}) {
    const Batch batch = batch_for(graph, samples);
    EXPECT_DOUBLE_EQ(train_steps(*pipeline, batch, 1), train_steps(*one_device, batch, 1))
        << samples;
    EXPECT_TRUE(are_equal(pipeline->snapshot().values, one_device->snapshot().values)) << samples;
  }
}

TEST(APipelineOfMicroBatches, ReportsTheFailureOfAStage) {
  const Graph graph = small_network("mnist-cnn");
  const auto pipeline = make(graph, "pipeline", 2, 4);
  Batch batch = batch_for(graph, kPipelineBatch);
  batch.target.i32()[5] = 99;  // is read by the last stage
  EXPECT_THROW(train_steps(*pipeline, batch, 1), ShapeError);
  batch.target.i32()[5] = 1;
  EXPECT_NO_THROW(train_steps(*pipeline, batch, 1)) << "the next step";
}

TEST(Stages, HoldTheWholeNetworkInOrder) {
  const Graph whole = small_network("resnet20");
  for (const int count : {1, 2, 3, 5}) {
    const std::vector<Stage> stages = cut_into_stages(whole, count);
    ASSERT_EQ(stages.size(), static_cast<std::size_t>(count));
    std::vector<std::string> parameters;
    std::int64_t next = 0;
    for (const Stage& stage : stages) {
      EXPECT_EQ(stage.first_value, next);
      next = stage.end_value;
      EXPECT_EQ(stage.graph.parameter_layout().total(), stage.end_value - stage.first_value);
      for (const Parameter& parameter : stage.graph.parameters)
        parameters.push_back(parameter.name);
    }
    EXPECT_EQ(next, whole.parameter_layout().total());
    ASSERT_EQ(parameters.size(), whole.parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(parameters[i], whole.parameters[i].name);
    }
  }
}

TEST(Stages, HaveAboutEqualWork) {
  const std::vector<Stage> stages = cut_into_stages(small_network("resnet20"), 3);
  std::int64_t all = 0;
  std::int64_t most = 0;
  for (const Stage& stage : stages) {
    all += stage.multiply_adds;
    most = std::max(most, stage.multiply_adds);
  }
  EXPECT_LT(static_cast<double>(most), 1.15 * static_cast<double>(all) / 3.0);
}

// Returns the names of the nodes behind which stages end.
std::string cut_of(const Graph& whole, const std::vector<std::string>& names) {
  return describe_cut(cut_behind(whole, names));
}

// Returns the message with which a cut is refused; "" if it is not.
std::string refusal_of(const Graph& whole, const std::vector<std::string>& names) {
  return message_if_thrown<UsageError>([&] { (void)cut_behind(whole, names); });
}

TEST(Stages, EndBehindTheNodesThatAreNamed) {
  const Graph whole = small_network("resnet20");
  EXPECT_EQ(cut_of(whole, {"layer1.1.bn2"}), "layer1.1.bn2");
  EXPECT_EQ(cut_of(whole, {"layer1", "layer2"}), "layer1.2.bn2, layer2.2.bn2");
  const std::vector<Stage> stages = cut_behind(whole, std::vector<std::string>{"layer2"});
  EXPECT_EQ(stages[1].graph.parameters.front().name, "layer3.0.conv1.weight");
  EXPECT_EQ(stages[0].end_value, stages[1].first_value);
}

TEST(Stages, AreNotCutWhereTheNetworkHasNoPlace) {
  const Graph whole = small_network("mnist-cnn");
  EXPECT_EQ(refusal_of(whole, {"conv9"}),
            "--cut conv9: network mnist-cnn cannot be cut there; choose from conv1, fc1");
  // The input of a residual block is read behind the block's first layer.
  EXPECT_NE(refusal_of(small_network("resnet20"), {"layer1.0.bn1"}), "");
  EXPECT_TRUE(contains(refusal_of(whole, {"fc1", "conv1"}), "--cut conv1: it is not behind fc1"));
  EXPECT_TRUE(contains(refusal_of(whole, {"conv1", "conv1"}), "each once"));
}

TEST(APipelineCutBehindNamedNodes, TrainsWhatOneDeviceTrains) {
  const Graph graph = small_network("mnist-cnn");
  const Batch batch = batch_for(graph, kPipelineBatch);
  StrategyOptions options = pipeline_options("pipeline", 2, 3);
  options.cut = {"fc1"};
  const auto pipeline = make_strategy(options, graph);
  const auto one_device = make(graph, "one-device", 1, 3);
  train_steps(*pipeline, batch, 3);
  train_steps(*one_device, batch, 3);
  EXPECT_TRUE(are_equal(pipeline->snapshot().values, one_device->snapshot().values));
}

TEST(Stages, HoldTheMicroBatchesThatAreInFlight) {
  const Graph whole = small_network("mnist-cnn");
  const std::vector<Stage> stages = cut_behind(whole, std::vector<std::string>{"fc1"});
  constexpr std::int64_t kSamples = 5;
  constexpr std::int64_t kOutputs = 64;  // of fc1, to the last stage
  const StageMemory first = memory_of_stage(stages, 0, 3, kSamples, 2);
  const StageMemory last = memory_of_stage(stages, 1, 3, kSamples, 2);
  EXPECT_EQ(first.values, 4 * whole.parameter_layout().total());
  EXPECT_EQ(last.values, first.values) << "every task evaluates the whole network";
  EXPECT_EQ(first.gradients + last.gradients, 2 * first.values) << "and a sum of micro-batches";
  EXPECT_EQ(first.slots, 2 * first.values) << "the chief writes checkpoints";
  EXPECT_LT(last.slots, first.slots);
  // Dense layer and loss of 4 classes; the first stage has two micro-batches in flight.
  EXPECT_EQ(last.activations, 4 * kSamples * (4 + num_elements(whole.nodes.back().shape)));
  EXPECT_EQ(first.activations, 2 * memory_of_stage(stages, 0, 1, kSamples, 2).activations);
  EXPECT_EQ(first.handovers, 4 * 2 * 2 * kSamples * kOutputs) << "two of three are in flight";
  EXPECT_EQ(last.handovers, first.handovers);
  EXPECT_EQ(memory_of_stage(stages, 1, 1, kSamples, 0).gradients, last.gradients / 2);
}

// Returns the message with which choose_stages() refuses; "" if it does not.
std::string refusal_of(int count, const std::vector<std::string>& cut, const std::string& origin) {
  return message_if_thrown<UsageError>(
      [&] { (void)choose_stages(small_network("mnist-cnn"), count, cut, origin); });
}

TEST(Stages, AreRefusedWhereTheNetworkHasTooFewPlacesToCut) {
  EXPECT_EQ(refusal_of(3, {}, "3 tasks"), "");
  const std::string line =
      ": network mnist-cnn cannot be cut into 4 stages with parameters; it gives at most 3";
  EXPECT_EQ(refusal_of(4, {}, "4 tasks"), "4 tasks" + line);
  EXPECT_EQ(refusal_of(4, {}, ""), "--stages 4" + line);
  const Graph whole = small_network("resnet20");
  const std::string text = message_of<UsageError>([&] { (void)cut_into_stages(whole, 50); });
  const int most = std::stoi(text.substr(text.rfind(' ') + 1));
  EXPECT_NO_THROW((void)cut_into_stages(whole, most));
  EXPECT_THROW((void)cut_into_stages(whole, most + 1), UsageError);
}

TEST(Stages, EndBehindAnyOfTheNamesThatAreListed) {
  const Graph whole = small_network("resnet20");
  const std::vector<std::string> names = names_to_cut_behind(whole);
  EXPECT_GT(names.size(), 3U);
  for (const std::string& name : names) EXPECT_EQ(cut_of(whole, {name}), name);
}

TEST(Stages, AreAsManyAsAsked) {
  EXPECT_EQ(refusal_of(2, {"fc1"}, "--workers 2"), "");
  EXPECT_EQ(refusal_of(3, {"fc1"}, "--workers 3"),
            "--workers 3: --cut fc1 gives 2 stages; give one node less than stages");
}

}  // namespace
}  // namespace syncopate
