// Tests --strategy pipeline: where networks are cut, and that stages train what one device trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/zoo/zoo.h"
#include "strategies/input_shard.h"
#include "strategies/pipeline/stages.h"
#include "strategies/strategy.h"

namespace syncopate {
namespace {

constexpr std::int64_t kBatch = 12;

Graph network(const std::string& name) {
  NetworkInput input{.sample_shape = {28, 28, 1}, .classes = 4};
  if (name == "fcn") {
    input.sample_shape = {16, 16, 3};
    input.target_shape = {16, 16};
  }
  const auto channels = static_cast<std::size_t>(input.sample_shape.back());
  input.input = {.dtype = DType::kU8,
                 .mean = std::vector<float>(channels, 0.5F),
                 .stddev = std::vector<float>(channels, 0.25F)};
  return build_network(name, input);
}

// Pixels and labels that are functions of their index.
Batch batch_for(const Graph& graph, std::int64_t samples) {
  Batch batch{.inputs = {},
              .target = {},
              .num_samples = samples,
              .loss_divisor = std::max<std::int64_t>(samples, 1)};
  Shape pixels = graph.input_shape();
  pixels.insert(pixels.begin(), samples);
  batch.inputs.push_back(make_host_tensor(pixels, DType::kU8));
  const std::span<std::uint8_t> x = batch.inputs[0].u8();
  const RandomStream noise(5, 7);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(noise.bits(i) >> 24);
  Shape target = graph.target_shape();
  target.insert(target.begin(), samples);
  batch.target = make_host_tensor(target, DType::kI32);
  const std::span<std::int32_t> labels = batch.target.i32();
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 4);
  batch.keys = make_host_tensor({samples}, DType::kI64);
  return batch;
}

std::unique_ptr<Strategy> make(const Graph& graph, const std::string& name, int stages,
                               int micro_batches, int lanes = 1) {
  StrategyOptions options;
  options.name = name;
  options.seed = 3;
  options.batch_size_per_replica = kBatch;
  options.stages = stages;
  options.micro_batches = micro_batches;
  options.lanes = lanes;
  options.optimizer.name = "momentum";
  return make_strategy(options, graph);
}

// Trains whole steps, and returns the sum of their losses.
double train(Strategy& strategy, const Batch& batch, int steps) {
  Replica& replica = strategy.replicas().front();
  double loss = 0.0;
  for (int step = 1; step <= steps; ++step) {
    replica.variables->pull({.learning_rate = 0.05F, .step = step});
    const auto wait = [&](BucketId bucket) { replica.variables->wait_values(bucket); };
    const int last = replica.micro_batches - 1;
    for (int part = 0; part < last; ++part) {
      const BatchShare share = share_of_replica(batch.num_samples, part, replica.micro_batches);
      loss += replica.model->forward(batch.rows(share.begin, share.end), wait).loss;
      replica.model->accumulate();
    }
    const BatchShare share = share_of_replica(batch.num_samples, last, replica.micro_batches);
    loss += replica.model->forward(batch.rows(share.begin, share.end), wait).loss;
    replica.model->backward([&](BucketId bucket) { replica.variables->push(bucket, {}); });
    replica.variables->commit();
  }
  return loss;
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

bool are_equal(const Tensor& left, const Tensor& right) {
  return std::ranges::equal(left.bytes(), right.bytes());
}

using Case = std::tuple<std::string, int, int, int>;  // network, stages, micro-batches, lanes

class APipeline : public testing::TestWithParam<Case> {};

TEST_P(APipeline, TrainsWhatOneDeviceTrains) {
  const auto& [name, stages, micro_batches, lanes] = GetParam();
  const Graph graph = network(name);
  const Batch batch = batch_for(graph, kBatch);
  const auto pipeline = make(graph, "pipeline", stages, micro_batches, lanes);
  const auto one_device = make(graph, "one-device", 1, micro_batches, lanes);
  // Losses are added in double precision, in another order.
  EXPECT_DOUBLE_EQ(train(*pipeline, batch, 3), train(*one_device, batch, 3));
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
    const Graph graph = network(name);
    const Batch batch = batch_for(graph, kBatch);
    const auto pipeline = make(graph, "pipeline", 2, 4);
    const auto one_device = make(graph, "one-device", 1, 1);
    train(*pipeline, batch, 10);
    train(*one_device, batch, 10);
    // 1e-3: the bound of all synchronous strategies after 10 steps.
    EXPECT_LT(relative_distance(pipeline->snapshot().values, one_device->snapshot().values), 1e-3)
        << name;
  }
}

TEST(APipelineOfMicroBatches, TakesShortAndEmptyBatches) {
  const Graph graph = network("mnist-cnn");
  const auto pipeline = make(graph, "pipeline", 2, 4);
  const auto one_device = make(graph, "one-device", 1, 4);
  for (const std::int64_t samples : {5, 0, 12, 1}) {
    const Batch batch = batch_for(graph, samples);
    EXPECT_DOUBLE_EQ(train(*pipeline, batch, 1), train(*one_device, batch, 1)) << samples;
    EXPECT_TRUE(are_equal(pipeline->snapshot().values, one_device->snapshot().values)) << samples;
  }
}

TEST(APipelineOfMicroBatches, ReportsTheFailureOfAStage) {
  const Graph graph = network("mnist-cnn");
  const auto pipeline = make(graph, "pipeline", 2, 4);
  Batch batch = batch_for(graph, kBatch);
  batch.target.i32()[5] = 99;  // is read by the last stage
  EXPECT_THROW(train(*pipeline, batch, 1), ShapeError);
  batch.target.i32()[5] = 1;
  EXPECT_NO_THROW(train(*pipeline, batch, 1)) << "the next step";
}

TEST(Stages, HoldTheWholeNetworkInOrder) {
  const Graph whole = network("resnet20");
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
  const std::vector<Stage> stages = cut_into_stages(network("resnet20"), 3);
  std::int64_t all = 0;
  std::int64_t most = 0;
  for (const Stage& stage : stages) {
    all += stage.multiply_adds;
    most = std::max(most, stage.multiply_adds);
  }
  EXPECT_LT(static_cast<double>(most), 1.15 * static_cast<double>(all) / 3.0);
}

TEST(Stages, AreRefusedWhereTheNetworkHasTooFewPlacesToCut) {
  EXPECT_THROW((void)cut_into_stages(network("mlp"), 50), UsageError);
}

}  // namespace
}  // namespace syncopate
