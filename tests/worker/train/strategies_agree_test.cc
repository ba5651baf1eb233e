// Tests the invariants that make strategies comparable: the same network, initial bits and samples
// under every strategy of one process. tests/end_to_end/strategies_test.cc compares strategies of
// several processes with strategies of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "strategies/snapshot.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"
#include "worker/train/train_step.h"

namespace syncopate {
namespace {

struct Training {
  std::string strategy = "one-device";
  int replicas = 1;
  std::string model = "mlp";
  std::string optimizer = "sgd";
  float learning_rate = 1.0F;
  std::int64_t global_batch = 24;
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  bool drop_remainder = true;
  BatchNormStatistics batch_norm = BatchNormStatistics::kSync;
  int lanes = 1;
  double clip_norm = 0.0;
  int micro_batches = 1;
  double average_decay = 0.0;
};

struct Outcome {
  std::vector<float> first;   // values before training
  std::vector<float> values;  // values after training, equal on every replica
  std::vector<float> state;
  std::vector<float> average;  // the moving average, if there is one
  std::vector<StepReport> reports;
};

std::vector<float> copy_of(const Tensor& tensor) {
  return {tensor.f32().begin(), tensor.f32().end()};
}

Graph network_of(const std::string& model, const DataSplits& data) {
  return build_network(model, {.sample_shape = data.train->spec().inputs[0].shape,
                               .classes = data.train->spec().num_classes,
                               .input = {DType::kU8, data.mean, data.stddev}});
}

Outcome train(const Training& run, int steps) {
  const bool is_resnet = run.model == "resnet20";
  const DataSplits data = open_dataset(is_resnet ? "synthetic:3x32x32:10" : "synthetic:1x28x28:10",
                                       {.cache_dir = {}, .seed = 3});
  const Graph graph = network_of(run.model, data);
  StrategyOptions options;
  options.name = run.strategy;
  options.seed = 5;
  options.replicas = run.replicas;
  options.lanes = run.lanes;
  options.bucket_bytes = run.bucket_bytes;
  options.batch_norm = run.batch_norm;
  options.batch_size_per_replica = share_of_replica(run.global_batch, 0, run.replicas).end;
  options.optimizer.name = run.optimizer;
  options.clip_norm = run.clip_norm;
  options.micro_batches = run.micro_batches;
  options.optimizer.average_decay = run.average_decay;
  const auto strategy = make_strategy(options, graph);
  const auto input = make_batch_source(*data.train, {.batch_size = run.global_batch,
                                                     .seed = 5,
                                                     .drop_remainder = run.drop_remainder,
                                                     .shard = strategy->input_shard()});
  Outcome outcome;
  outcome.first = copy_of(strategy->snapshot().values);
  for (int step = 1; step <= steps; ++step) {
    outcome.reports.push_back(
        train_step(*strategy, *input, {.learning_rate = run.learning_rate, .step = step}));
  }
  synchronous_job(*strategy).agree();
  outcome.values = copy_of(strategy->snapshot().values);
  outcome.state = copy_of(strategy->snapshot().state);
  for (const Replica& replica : strategy->replicas()) {
    if (run.average_decay > 0.0) {
      outcome.average = copy_of(synchronous_job(*strategy).average(replica));
      EXPECT_EQ(outcome.average, copy_of(average_of(strategy->snapshot().slots)));
    }
    EXPECT_EQ(copy_of(replica.arena->values()), outcome.values)
        << "replica " << replica.index << " holds other bits";
  }
  return outcome;
}

// Returns the relative L2 distance of the changes that training made to the values.
double distance(const Outcome& a, const Outcome& b) {
  double difference = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double change = static_cast<double>(b.values[i]) - static_cast<double>(b.first[i]);
    const double other = static_cast<double>(a.values[i]) - static_cast<double>(a.first[i]);
    difference += (change - other) * (change - other);
    length += change * change;
  }
  return std::sqrt(difference / length);
}

double weight_distance(const Outcome& a, const Outcome& b) {
  double difference = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const auto x = static_cast<double>(a.values[i]);
    const auto y = static_cast<double>(b.values[i]);
    difference += (x - y) * (x - y);
    length += y * y;
  }
  return std::sqrt(difference / length);
}

class SynchronousStrategies : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  Training run(int replicas) const {
    Training run;
    run.strategy = std::get<0>(GetParam());
    run.model = std::get<1>(GetParam());
    run.replicas = replicas;
    return run;
  }
  Training one_device() const {
    Training run;
    run.model = std::get<1>(GetParam());
    return run;
  }
};

TEST_P(SynchronousStrategies, WithOneReplicaAreOneDeviceBitForBit) {
  for (const char* optimizer : {"sgd", "adam"}) {
    Training alone = one_device();
    Training other = run(1);
    alone.learning_rate = other.learning_rate = 0.01F;
    alone.optimizer = other.optimizer = optimizer;
    other.bucket_bytes = 4096;
    const Outcome expected = train(alone, 3);
    const Outcome found = train(other, 3);
    EXPECT_EQ(found.values, expected.values);
    EXPECT_EQ(found.state, expected.state);
    EXPECT_EQ(found.reports.back().scores.loss, expected.reports.back().scores.loss);
  }
}

TEST_P(SynchronousStrategies, GiveTheGradientOfTheWholeBatch) {
  const Outcome expected = train(one_device(), 1);
  for (const int replicas : {2, 3, 4}) {
    const Outcome found = train(run(replicas), 1);
    EXPECT_EQ(found.first, expected.first) << "initial values do not depend on the rank";
    // The tolerance of 1e-5 covers f32 sums in another order, and the rounding of one update.
    EXPECT_LE(distance(found, expected), 1e-5) << replicas << " replicas";
    const Scores& scores = found.reports.back().scores;
    EXPECT_EQ(scores.num_samples, 24);
    EXPECT_EQ(scores.metrics, expected.reports.back().scores.metrics);
    EXPECT_NEAR(scores.loss, expected.reports.back().scores.loss, 1e-5);
  }
}

TEST_P(SynchronousStrategies, StayTogetherOverTenSteps) {
  Training alone = one_device();
  alone.learning_rate = 0.01F;
  alone.optimizer = "momentum";
  const Outcome expected = train(alone, 10);
  for (const int replicas : {2, 3, 4}) {
    Training other = run(replicas);
    other.learning_rate = alone.learning_rate;
    other.optimizer = alone.optimizer;
    EXPECT_LE(weight_distance(train(other, 10), expected), 1e-3) << replicas << " replicas";
  }
}

// In the last step of an epoch, after whole batches of 24, 3 or 4 replicas share 8 samples; and a
// batch of 2 leaves replicas without any sample.
TEST_P(SynchronousStrategies, CountShortAndEmptyShares) {
  Training alone = one_device();
  alone.global_batch = 2;
  const Outcome expected = train(alone, 1);
  for (const int replicas : {3, 4}) {
    Training other = run(replicas);
    other.global_batch = 2;
    EXPECT_LE(distance(train(other, 1), expected), 1e-5) << replicas << " replicas";
  }
}

// With a rate of 1 and without momentum the step is as long as the clipped gradient.
TEST_P(SynchronousStrategies, ClipTheGradientOfTheWholeStep) {
  constexpr double kNorm = 1e-3;
  Training alone = one_device();
  alone.clip_norm = kNorm;
  const Outcome expected = train(alone, 1);
  double squares = 0.0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const auto step = static_cast<double>(expected.values[i] - expected.first[i]);
    squares += step * step;
  }
  EXPECT_NEAR(std::sqrt(squares), kNorm, 0.01 * kNorm);  // the step is rounded against the values
  for (const int replicas : {1, 2, 3}) {
    Training other = run(replicas);
    other.clip_norm = kNorm;
    other.bucket_bytes = 4096;
    const Outcome found = train(other, 1);
    if (replicas == 1) {
      EXPECT_EQ(found.values, expected.values);
    }
    // Of a step this short, the rounding of the values is a larger part than that of the sums.
    EXPECT_LE(distance(found, expected), 1e-3) << replicas << " replicas";
  }
}

// Batch norm is left out: its statistics are those of a micro-batch.
TEST_P(SynchronousStrategies, AddMicroBatchesUpToTheWholeBatch) {
  if (std::get<1>(GetParam()) == "resnet20") return;
  const Outcome expected = train(one_device(), 1);
  for (const int micro_batches : {2, 5, 24}) {  // 24 leave most replicas without samples
    Training alone = one_device();
    alone.micro_batches = micro_batches;
    const Outcome in_parts = train(alone, 1);
    EXPECT_LE(distance(in_parts, expected), 1e-5) << micro_batches << " micro-batches";
    for (const int replicas : {1, 3}) {
      Training other = run(replicas);
      other.micro_batches = micro_batches;
      other.bucket_bytes = 4096;
      const Outcome found = train(other, 1);
      EXPECT_LE(distance(found, expected), 1e-5) << replicas << " replicas";
      EXPECT_EQ(found.reports.back().scores.num_samples, 24);
      EXPECT_NEAR(found.reports.back().scores.loss, expected.reports.back().scores.loss, 1e-5);
      if (replicas == 1) {
        EXPECT_EQ(found.values, in_parts.values);
      }
    }
  }
}

TEST_P(SynchronousStrategies, KeepTheSameMovingAverage) {
  Training alone = one_device();
  alone.learning_rate = 0.01F;
  alone.average_decay = 0.5;
  const Outcome expected = train(alone, 3);
  EXPECT_NE(expected.average, expected.values);
  for (const int replicas : {1, 3}) {
    Training other = run(replicas);
    other.learning_rate = alone.learning_rate;
    other.average_decay = alone.average_decay;
    other.bucket_bytes = 4096;
    Outcome found = train(other, 3);
    if (replicas == 1) {
      EXPECT_EQ(found.average, expected.average);
    }
    found.values = found.average;
    EXPECT_LE(weight_distance(found, {.first = {}, .values = expected.average}), 1e-3);
  }
}

std::string suite_name(const testing::TestParamInfo<SynchronousStrategies::ParamType>& parameters) {
  std::string name = std::get<0>(parameters.param) + "_" + std::get<1>(parameters.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, SynchronousStrategies,
                         testing::Combine(testing::Values("mirrored", "multi-worker-mirrored",
                                                          "central-storage"),
                                          testing::Values("mlp", "mnist-cnn", "resnet20")),
                         suite_name);

class ReplicaCount : public testing::TestWithParam<int> {};

// The order of additions is fixed, so the result does not depend on buckets and strategy.
TEST_P(ReplicaCount, GivesTheSameBitsForAnyBucketsAndStrategy) {
  for (const double clip_norm : {0.0, 0.1}) {
    Training whole{.strategy = "mirrored", .replicas = GetParam(), .model = "mnist-cnn"};
    whole.learning_rate = 0.1F;
    whole.clip_norm = clip_norm;
    const Outcome expected = train(whole, 3);
    Training cut = whole;
    cut.bucket_bytes = 4096;
    EXPECT_EQ(train(cut, 3).values, expected.values) << "small buckets";
    Training central = whole;
    central.strategy = "central-storage";
    EXPECT_EQ(train(central, 3).values, expected.values) << "central storage";
    central.bucket_bytes = 4096;
    EXPECT_EQ(train(central, 3).values, expected.values) << "central storage, small buckets";
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ReplicaCount, testing::Values(2, 3, 4));

TEST(RunningStatistics, AreAveragedByTheSamplesThatReplicasHaveSeen) {
  Training run{.strategy = "mirrored", .replicas = 3, .model = "resnet20"};
  run.batch_norm = BatchNormStatistics::kLocal;
  run.global_batch = 8;  // shares of 3, 3 and 2 samples
  run.learning_rate = 0.0F;

  // The expected statistics are those of each replica's share alone: batches of one replica, of the
  // same samples.
  const DataSplits data = open_dataset("synthetic:3x32x32:10", {.cache_dir = {}, .seed = 3});
  const Graph graph = network_of("resnet20", data);
  std::vector<double> expected;
  for (int r = 0; r < 3; ++r) {
    StrategyOptions options;
    options.seed = 5;
    options.batch_size_per_replica = 8;
    const auto alone = make_strategy(options, graph);
    const auto input =
        make_batch_source(*data.train, {.batch_size = 8, .seed = 5, .shard = {r, 1, 3}});
    train_step(*alone, *input, {.learning_rate = 0.0F, .step = 1});
    const std::vector<float> state = copy_of(alone->snapshot().state);
    expected.resize(state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      expected[i] += static_cast<double>(state[i]) * (r < 2 ? 3.0 : 2.0) / 8.0;
    }
  }
  const std::vector<float> found = train(run, 1).state;
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    // The tolerance of 1e-6 covers one rounding to f32.
    ASSERT_NEAR(found[i], expected[i], 1e-6 * (1.0 + std::abs(expected[i]))) << i;
  }
}

TEST(Strategies, OfSeveralTasksAreRefusedInOneTask) {
  Training run{.strategy = "one-device", .replicas = 2};
  EXPECT_THROW(train(run, 1), UsageError);
}

}  // namespace
}  // namespace syncopate
