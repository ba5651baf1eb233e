// Tests --strategy pipeline whose stages are tasks, as threads of one test: bits, snapshots, and
// the end of a job.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "models/base/errors.h"
#include "strategies/strategy.h"
#include "tests/strategies/cluster/threads_as_tasks.h"
#include "tests/strategies/pipeline_training.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

using TaskCase = std::tuple<std::string, int, int, Transport>;  // network, tasks, micro-batches

// Runs `task` as every task of a job, each with its part of the pipeline. The options are those of
// pipeline_options() and `transport`.
void run_stages(const Graph& graph, int tasks, const StrategyOptions& options,
                const std::function<void(Strategy&)>& task) {
  const auto memberships = meet(tasks);
  at_once(tasks, [&](int i) {
    StrategyOptions own = options;
    own.membership = memberships[static_cast<std::size_t>(i)].get();
    const auto strategy = make_strategy(own, graph);
    strategy->begin({});
    task(*strategy);
    strategy->leave();
  });
}

Snapshot copy_of(const Snapshot& live) {
  Snapshot copy;
  const auto copied = [](const Tensor& from) {
    Tensor to = make_host_tensor(from.shape(), from.dtype());
    std::ranges::copy(from.bytes(), to.bytes().begin());
    return to;
  };
  copy.values = copied(live.values);
  copy.state = copied(live.state);
  for (const Snapshot::Slot& slot : live.slots) {
    copy.slots.push_back({slot.name, copied(slot.values)});
  }
  return copy;
}

void expect_equal(const Snapshot& found, const Snapshot& expected) {
  EXPECT_TRUE(are_equal(found.values, expected.values));
  EXPECT_TRUE(are_equal(found.state, expected.state));
  ASSERT_EQ(found.slots.size(), expected.slots.size());
  for (std::size_t i = 0; i < expected.slots.size(); ++i) {
    EXPECT_TRUE(are_equal(found.slots[i].values, expected.slots[i].values));
  }
}

class StagesAsTasks : public testing::TestWithParam<TaskCase> {};

TEST_P(StagesAsTasks, TrainAndSaveWhatOneDeviceDoes) {
  const auto& [name, tasks, micro_batches, transport] = GetParam();
  const Graph graph = small_network(name);
  const Batch batch = batch_for(graph, kPipelineBatch);
  const auto alone = make_strategy(pipeline_options("one-device", 1, micro_batches), graph);
  const double loss = train_steps(*alone, batch, 3);
  StrategyOptions options = pipeline_options("pipeline", tasks, micro_batches);
  options.transport = transport;
  options.batch_norm = BatchNormStatistics::kSync;  // there is one replica
  run_stages(graph, tasks, options, [&](Strategy& stage) {
    // 1e-9: the sum of the tasks' reports is exact to 2^-42.
    EXPECT_NEAR(train_steps(stage, batch, 3), loss, 1e-9) << "every task learns the scores";
    const Snapshot whole = stage.snapshot();
    EXPECT_TRUE(are_equal(whole.values, alone->snapshot().values)) << "on every task";
    if (stage.is_chief()) expect_equal(whole, alone->snapshot());
    EXPECT_EQ(synchronous_job(stage).idle_seconds().size(), static_cast<std::size_t>(tasks));
  });
}

INSTANTIATE_TEST_SUITE_P(Each, StagesAsTasks,
                         testing::Values(TaskCase{"mlp", 2, 4, Transport::kShm},
                                         TaskCase{"mnist-cnn", 3, 1, Transport::kTcp},
                                         TaskCase{"mnist-cnn", 2, 5, Transport::kTcp},
                                         TaskCase{"fcn", 3, 4, Transport::kShm},
                                         TaskCase{"resnet20", 2, 3, Transport::kShm}));

TEST(StagesOfTasks, RestoreTheChiefsSnapshot) {
  const Graph graph = small_network("mnist-cnn");
  const Batch batch = batch_for(graph, kPipelineBatch);
  const auto alone = make_strategy(pipeline_options("one-device", 1, 4), graph);
  train_steps(*alone, batch, 2);
  const Snapshot saved = copy_of(alone->snapshot());
  train_steps(*alone, batch, 2);
  run_stages(graph, 2, pipeline_options("pipeline", 2, 4), [&](Strategy& stage) {
    // Tasks other than the chief have no file: what they pass is not read.
    stage.restore(stage.is_chief() ? saved : copy_of(stage.snapshot()));
    train_steps(stage, batch, 2);
    const Snapshot whole = stage.snapshot();
    if (stage.is_chief()) expect_equal(whole, alone->snapshot());
  });
}

TEST(StagesOfTasks, TakeShortAndEmptyBatches) {
  const Graph graph = small_network("mnist-cnn");
  const auto alone = make_strategy(pipeline_options("one-device", 1, 4), graph);
  const std::vector<std::int64_t> sizes{5, 0, 12, 1};
  for (const std::int64_t samples : sizes) train_steps(*alone, batch_for(graph, samples), 1);
  StrategyOptions options = pipeline_options("pipeline", 3, 4);
  options.transport = Transport::kTcp;
  run_stages(graph, 3, options, [&](Strategy& stage) {
    for (const std::int64_t samples : sizes) train_steps(stage, batch_for(graph, samples), 1);
    EXPECT_TRUE(are_equal(stage.snapshot().values, alone->snapshot().values));
  });
}

TEST(StagesOfTasks, ReadOnlyWhatTheyUse) {
  const Graph graph = small_network("mnist-cnn");
  run_stages(graph, 3, pipeline_options("pipeline", 3, 1), [&](Strategy& stage) {
    const int rank = stage.evaluation_shard().first;
    const InputShard shard = stage.input_shard();
    EXPECT_EQ(shard.total, 1) << "every stage follows all samples";
    EXPECT_EQ(shard.reads_inputs, rank == 0);
    EXPECT_EQ(shard.reads_targets, rank == 2);
    EXPECT_EQ(stage.evaluation_shard().total, 3);
  });
}

// Every task reads the order of the samples and meets the same bad ones, but stops on its own.
TEST(StagesOfTasks, CountBadSamplesOnceAndTheStopsOfAll) {
  const Graph graph = small_network("mnist-cnn");
  const Batch batch = batch_for(graph, kPipelineBatch);
  run_stages(graph, 3, pipeline_options("pipeline", 3, 2), [&](Strategy& stage) {
    Replica& replica = stage.replicas().front();
    replica.variables->pull({.learning_rate = 0.05F, .step = 1});
    StepReport report{.scores = replica.model->forward(batch, [](BucketId) {})};
    report.scores.num_bad = 5;
    report.stops[ps::StopKind::kComplete] = 1;
    replica.model->backward([&](BucketId bucket) { replica.variables->push(bucket, report); });
    const StepReport total = replica.variables->commit();
    EXPECT_EQ(total.scores.num_bad, 5);
    EXPECT_EQ(total.scores.num_samples, kPipelineBatch);
    EXPECT_EQ(total.stops[ps::StopKind::kComplete], 3);
  });
}

class AnAbortedStage : public testing::TestWithParam<Transport> {};

TEST_P(AnAbortedStage, SaysWhatItWaitedFor) {
  const Graph graph = small_network("mnist-cnn");
  const Batch batch = batch_for(graph, kPipelineBatch);
  const auto memberships = meet(2);
  std::string said;
  at_once(2, [&](int i) {
    Membership& own = *memberships[static_cast<std::size_t>(i)];
    StrategyOptions options = pipeline_options("pipeline", 2, 2);
    options.transport = GetParam();
    options.membership = &own;
    const auto strategy = make_strategy(options, graph);
    strategy->begin({});
    if (i == 1) return own.fail("a full disk");
    own.on_failure([&](const std::string& reason) { strategy->abort(reason); });
    try {
      train_steps(*strategy, batch, 1);
    } catch (const PeerError& error) {
      said = error.what();
    }
    own.on_failure({});
  });
  EXPECT_TRUE(
      said.starts_with("rank 0 waited for the gradient of micro-batch 0 from rank 1 (host "))
      << said;
}

INSTANTIATE_TEST_SUITE_P(Each, AnAbortedStage, testing::Values(Transport::kShm, Transport::kTcp));

TEST(StagesOfTasks, MustAgreeAboutTheCut) {
  const Graph graph = small_network("mnist-cnn");
  const auto memberships = meet(2);
  std::vector<std::string> refusals(2);
  at_once(2, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    StrategyOptions options = pipeline_options("pipeline", 2, 2);
    options.membership = memberships[index].get();
    options.cut = {i == 0 ? "conv1" : "fc1"};
    try {
      (void)make_strategy(options, graph);
    } catch (const UsageError& error) {
      refusals[index] = error.what();
    }
  });
  for (const std::string& refusal : refusals) {
    EXPECT_TRUE(contains(refusal, "rank 1 has ", "cut behind fc1"));
  }
}

}  // namespace
}  // namespace syncopate
