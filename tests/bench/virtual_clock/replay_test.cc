// Replays jobs of real processes, whose order depends on timing, from their records.
#include "bench/virtual_clock/replay.h"

#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"

namespace syncopate::bench {
namespace {

using test::operator+;
using test::parameter_servers;
using test::TrainingRuns;

const std::string kSamples = "synthetic:1x28x28:10:1200";

Arguments small_job(const TrainingRuns& runs) {
  return as_words("--model mlp --data", kSamples, "--steps 60 --record", runs / "order");
}

// Opens the samples of the recorded runs: 7 is the seed that TrainingRuns passes to them.
DataSplits samples() { return open_dataset(kSamples, {.cache_dir = {}, .seed = 7}); }

class RecordedJobs : public testing::TestWithParam<Arguments> {};

TEST_P(RecordedJobs, AreComputedAgainBitForBit) {
  TrainingRuns runs;
  const auto summary = runs.summary_of(parameter_servers({.workers = 3, .servers = 2}),
                                       small_job(runs) + GetParam());
  const std::vector<std::filesystem::path> files{runs / "order.shard1", runs / "order.shard0"};
  const ReplayOutcome outcome = replay_order(files, samples());
  EXPECT_GT(summary.at("staleness_mean"), 0.1) << "nothing depended on timing";
  EXPECT_EQ(outcome.weights_hash, summary.at("weights_hash"));
  EXPECT_EQ(outcome.pushes, 60);
  EXPECT_EQ(outcome.model, "mlp");
}

INSTANTIATE_TEST_SUITE_P(
    Under, RecordedJobs,
    testing::Values(Arguments{"--optimizer", "adam"},
                    Arguments{"--consistency", "ssp", "--max-staleness", "1"},
                    Arguments{"--staleness-rule", "inverse", "--optimizer", "momentum"},
                    Arguments{"--staleness-rule", "dc-adaptive", "--optimizer", "sgd"},
                    Arguments{"--staleness-rule", "ordered-momentum", "--optimizer", "momentum"},
                    Arguments{"--compress", "topk:0.1", "--optimizer", "sgd"},
                    Arguments{"--compress", "bf16", "--staleness-rule", "dc"}),
    [](const auto& parameters) {
      std::string name = parameters.param[1];
      std::erase_if(name, [](unsigned char c) { return !std::isalnum(c); });
      return name;
    });

// What compression left out of a dropped gradient is in a later one.
TEST(ARecordedJobThatDropsGradients, IsComputedAgainBitForBit) {
  for (const char* rule : {"ringmaster:1", "rennala:3"}) {
    TrainingRuns runs;
    const auto summary = runs.summary_of(
        parameter_servers({.workers = 3, .servers = 2}),
        small_job(runs) + as_words("--optimizer sgd --compress topk:0.1 --staleness-rule", rule));
    const std::vector<std::filesystem::path> files{runs / "order.shard1", runs / "order.shard0"};
    const ReplayOutcome outcome = replay_order(files, samples());
    EXPECT_EQ(outcome.weights_hash, summary.at("weights_hash")) << rule;
    EXPECT_GT(outcome.pushes, rule[1] == 'i' ? 60 : 180) << "no gradient was dropped";
  }
}

// A worker's own optimizer goes on from round to round, or starts again.
TEST(ARecordedJobOfDisplacements, IsComputedAgainBitForBit) {
  for (const Arguments& flags :
       {as_words("--optimizer adam"),
        as_words("--optimizer adam --inner-state reset --compress bf16"),
        as_words("--optimizer momentum --consistency ssp --outer diloco --compress topk:0.1"),
        as_words("--optimizer sgd --outer delayed-nesterov:3")}) {
    TrainingRuns runs;
    const auto summary =
        runs.summary_of(parameter_servers({.workers = 3, .servers = 2}),
                        small_job(runs) + as_words("--push displacement --sync-every 3") + flags);
    const std::vector<std::filesystem::path> files{runs / "order.shard0", runs / "order.shard1"};
    const ReplayOutcome outcome = replay_order(files, samples());
    EXPECT_EQ(outcome.weights_hash, summary.at("weights_hash")) << testing::PrintToString(flags);
    EXPECT_GE(outcome.pushes, 20);
    EXPECT_LT(outcome.pushes, 30);
  }
}

TEST(RecordedJob, IsRefusedWithoutAllItsRecordsAndItsData) {
  TrainingRuns runs;
  runs.train(parameter_servers({.workers = 2, .servers = 2}), small_job(runs));
  const std::vector<std::filesystem::path> all{runs / "order.shard0", runs / "order.shard1"};
  const std::vector<std::filesystem::path> one{runs / "order.shard0"};
  const std::vector<std::filesystem::path> twice{runs / "order.shard0", runs / "order.shard0"};
  EXPECT_THROW(replay_order({}, samples()), UsageError);
  EXPECT_THROW(replay_order(one, samples()), UsageError);
  EXPECT_THROW(replay_order(twice, samples()), UsageError);
  const DataSplits other = open_dataset(kSamples, {.cache_dir = {}, .seed = 4});
  EXPECT_THROW(replay_order(all, other), UsageError);
}

}  // namespace
}  // namespace syncopate::bench
