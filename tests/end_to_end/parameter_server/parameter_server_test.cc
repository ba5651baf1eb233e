// Tests `--strategy parameter-server` without faults: it gives the bits of the synchronous
// strategies where no result depends on timing, and a checkpoint of one strategy can be resumed
// with another.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/checkpoint_values.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

const std::vector<Arguments> kConsistencies = {{"--consistency", "async"},
                                               {"--consistency", "ssp", "--max-staleness", "0"},
                                               {"--consistency", "ssp", "--max-staleness", "2"},
                                               {"--consistency", "sync"}};
const Arguments kSync{"--consistency", "sync"};

struct Network {
  const char* name;
  Arguments flags;  // these training flags include an evaluation
};
std::ostream& operator<<(std::ostream& out, const Network& network) { return out << network.name; }

const std::vector<Network> kNetworks = {
    {"Mlp", as_words("--model mlp --data synthetic:1x28x28:10:240 --batch-size-per-replica 24 "
                     "--steps 25 --eval-every 1 --optimizer adam")},
    {"MnistCnn",
     as_words("--model mnist-cnn --data synthetic:1x28x28:10:96 --batch-size-per-replica 16 "
              "--steps 10 --eval-every 1 --optimizer momentum --learning-rate 0.01")},
    {"Resnet20",
     as_words("--model resnet20 --data synthetic:3x16x16:10:96 --batch-size-per-replica 16 --steps "
              "10 --eval-every 1 --optimizer momentum --learning-rate 0.01")}};

class ParameterServer : public testing::TestWithParam<Network> {};

// Maps the number of a step to the loss measured at that step.
using Losses = std::map<int, double>;

Losses test_losses(const TrainingRuns& runs) {
  Losses losses;
  for (const auto& line : runs.evaluations()) losses[line.at("step")] = line.at("test_loss");
  return losses;
}

// The loss of asynchronous workers is measured at the end of an epoch or soon after, because the
// next batch may be under way when the measurement is requested. On a busy machine the measurement
// of the last epoch's end may be that of the run's end, five steps later.
void expect_same_where_both_measured(const Losses& found, const Losses& expected) {
  EXPECT_GE(found.size(), 2U) << "one within the run, one at its end";
  EXPECT_LE(found.size(), expected.size());
  for (const auto& [step, loss] : found) {
    if (expected.contains(step)) {
      EXPECT_EQ(loss, expected.at(step)) << "at step " << step;
    }
  }
  EXPECT_EQ(found.rbegin()->first, expected.rbegin()->first);
}

TEST_P(ParameterServer, OfOneWorkerIsOneDeviceBitForBit) {
  TrainingRuns runs;
  const auto alone = runs.summary_of(one_device(), GetParam().flags);
  const Losses losses = test_losses(runs);
  ASSERT_GE(losses.size(), 2U) << "one within the run, one at its end";
  for (const Arguments& consistency : kConsistencies) {
    for (const auto& [servers, transport] : {std::pair{1, "auto"}, std::pair{2, "tcp"}}) {
      const auto served =
          runs.summary_of(parameter_servers({.workers = 1, .servers = servers}),
                          GetParam().flags + consistency + Arguments{"--transport", transport});
      const std::string what = consistency.back() + " over " + transport;
      EXPECT_EQ(served.at("weights_hash"), alone.at("weights_hash")) << what;
      EXPECT_EQ(served.at("samples"), alone.at("samples")) << what;
      EXPECT_EQ(served.at("steps"), alone.at("steps")) << what;
      EXPECT_EQ(served.at("staleness_mean"), 0.0) << what;
      SCOPED_TRACE(what);
      expect_same_where_both_measured(test_losses(runs), losses);
      if (consistency == kSync) {
        EXPECT_EQ(test_losses(runs), losses);
      }
    }
  }
}

TEST_P(ParameterServer, UnderSyncHasTheBitsOfMultiWorkerMirrored) {
  for (const int workers : {2, 3}) {
    TrainingRuns runs;
    // An epoch has at least 3 steps with two workers and at least 2 steps with three workers.
    const auto ring = runs.summary_of(multi_worker(workers), GetParam().flags);
    const Losses losses = test_losses(runs);
    const auto served = runs.summary_of(parameter_servers({.workers = workers, .servers = 2}),
                                        GetParam().flags + kSync);
    EXPECT_EQ(served.at("weights_hash"), ring.at("weights_hash")) << workers;
    EXPECT_EQ(served.at("samples"), ring.at("samples")) << workers;
    EXPECT_EQ(test_losses(runs), losses) << workers;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ParameterServer, testing::ValuesIn(kNetworks),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

Arguments momentum_run(int steps, const fs::path& folder) {
  return as_words("--model mlp --data synthetic:1x28x28:10:2400 --optimizer momentum --steps",
                  std::to_string(steps), "--checkpoint-dir", folder.string());
}
const Arguments kBatchOfOne{"--batch-size-per-replica", "24"};

nlohmann::json header_of(const fs::path& checkpoint) {
  const std::string bytes = read_text(checkpoint);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  return nlohmann::json::parse(bytes.substr(sizeof size, size));
}

// Returns the number of samples that a checkpoint records as trained: all samples before "offset"
// in epoch 0, except those in "untrained".
std::int64_t samples_trained(const nlohmann::json& metadata) {
  std::int64_t samples = std::stoll(metadata.at("offset").get<std::string>());
  if (!metadata.contains("untrained")) return samples;
  for (const auto& range : nlohmann::json::parse(metadata.at("untrained").get<std::string>())) {
    samples -= range.at(2).get<std::int64_t>() - range.at(1).get<std::int64_t>();
  }
  return samples;
}

// The fixture provides a checkpoint that was written in the middle of an epoch, while two workers
// trained batches. Timing decides which ranges of samples it records as untrained; the fixture
// chooses a checkpoint that has such ranges.
class ACheckpointOfAsynchronousWorkers : public testing::Test {
 protected:
  ACheckpointOfAsynchronousWorkers() {
    runs_.train(parameter_servers({.workers = 2, .servers = 3}),
                momentum_run(60, runs_ / "ck") + kBatchOfOne +
                    Arguments{"--checkpoint-every", "5", "--service-time", "exponential:4"});
    for (const std::string& name : names_in(runs_ / "ck")) {
      const fs::path file = runs_ / ("ck/" + name);
      const auto header = header_of(file);
      EXPECT_TRUE(header.contains("optimizer.momentum.fc1.weight")) << name;
      const auto& metadata = header.at("__metadata__");
      EXPECT_EQ(samples_trained(metadata), std::stoll(metadata.at("samples").get<std::string>()));
      if (source_.empty() || metadata.contains("untrained")) {
        source_ = file;
        step_ = std::stoi(metadata.at("step").get<std::string>());
      }
    }
  }

  // Resumes from the chosen checkpoint for `steps` steps, and returns the summary.
  nlohmann::json go_on(const Arguments& where, const Arguments& batch, int steps) {
    const std::string folder = "moved" + std::to_string(moves_++);
    fs::create_directory(runs_ / folder);
    fs::copy(source_, runs_ / folder);
    return runs_.summary_of(
        where, momentum_run(step_ + steps, runs_ / folder) + batch + Arguments{"--resume"});
  }

  TrainingRuns runs_;
  fs::path source_;
  int step_ = 0;
  int moves_ = 0;
};

TEST_F(ACheckpointOfAsynchronousWorkers, IsResumedByAnyStrategy) {
  ASSERT_FALSE(source_.empty());
  const std::int64_t before = std::int64_t{step_} * 24;
  for (const auto& [where, batch] :
       {std::pair{mirrored(2), Arguments{"--batch-size", "24"}},
        std::pair{parameter_servers({.workers = 3, .servers = 2}), kBatchOfOne},
        std::pair{parameter_servers({.workers = 2, .servers = 2}, kSync),
                  Arguments{"--batch-size", "24"}}}) {
    const auto summary = go_on(where, batch, 6);
    EXPECT_EQ(summary.at("steps"), step_ + 6);
    EXPECT_EQ(summary.at("samples"), before + 6 * 24);
    EXPECT_GE(summary.at("test_accuracy"), 0.9) << "slots and weights were taken over";
  }
}

TEST(ASynchronousJobOfServers, ThatIsResumedEndsLikeAnUninterruptedOne) {
  TrainingRuns runs;
  const Arguments batch = Arguments{"--batch-size", "24"} + kSync;
  runs.train(parameter_servers({.workers = 2, .servers = 3}),
             momentum_run(10, runs / "whole") + batch);
  runs.train(parameter_servers({.workers = 2, .servers = 3}), momentum_run(6, runs / "ck") + batch);
  const auto resumed =
      runs.summary_of(parameter_servers({.workers = 2, .servers = 2}),
                      momentum_run(10, runs / "ck") + batch + Arguments{"--resume"});
  EXPECT_EQ(resumed.at("steps"), 10);
  EXPECT_EQ(resumed.at("samples"), 240);
  // The tolerance is 1e-3: the f32 additions of ten steps may have another order, if the buckets
  // are divided in another way.
  EXPECT_LE(relative_distance(newest_checkpoint_values(runs / "ck"),
                              newest_checkpoint_values(runs / "whole")),
            1e-3);
}

// Workers receive values that are rounded to bf16. Evaluations and checkpoints have those of the
// servers, which are exact.
TEST(ASynchronousJobWithBf16Values, EvaluatesAndSavesExactOnes) {
  TrainingRuns runs;
  const Arguments flags = Arguments{"--batch-size", "24", "--compress", "bf16"} + kSync;
  const auto where = parameter_servers({.workers = 2, .servers = 2});
  const auto served = runs.summary_of(where, momentum_run(12, runs / "ck") + flags);
  std::vector<float> values = newest_checkpoint_values(runs / "ck");
  const auto is_exact = [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & 0xffffU) != 0;
  };
  EXPECT_GT(std::ranges::count_if(values, is_exact), std::ssize(values) / 2);
  const auto result = run_syncopate(
      {"evaluate", "--json", "--checkpoint", runs / ("ck/" + names_in(runs / "ck").at(0))});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // The tolerance is 1e-9, because two workers add the losses of batches in another order.
  EXPECT_NEAR(nlohmann::json::parse(result.out).at("test_loss").get<double>(),
              served.at("test_loss").get<double>(), 1e-9);
}

TEST(ASynchronousJobWithBf16Values, HasTheSameBitsOverAnyTransportAndWithAnyEvaluations) {
  TrainingRuns runs;
  const Arguments flags = Arguments{"--batch-size", "24", "--compress", "bf16"} + kSync;
  const auto where = parameter_servers({.workers = 2, .servers = 2});
  const auto plain = runs.summary_of(
      where, momentum_run(12, runs / "tcp") + flags + Arguments{"--transport", "tcp"});
  const auto evaluated =
      runs.summary_of(where, momentum_run(12, runs / "shm") + flags +
                                 Arguments{"--transport", "shm", "--eval-every-steps", "2"});
  EXPECT_EQ(runs.evaluations().size(), 6U);
  EXPECT_EQ(evaluated.at("weights_hash"), plain.at("weights_hash"));
  const auto exact = runs.summary_of(
      where, momentum_run(12, runs / "f32") + kSync + Arguments{"--batch-size", "24"});
  EXPECT_NE(exact.at("weights_hash"), plain.at("weights_hash"));
}

// A worker that replaced the running statistics by initial values would change the average of all
// workers.
TEST(ManyAsynchronousWorkers, ResumeWithTheRunningStatisticsOfACheckpoint) {
  TrainingRuns runs;
  const Arguments what = as_words(
      "--model resnet20 --data synthetic:3x16x16:10:192 --optimizer momentum "
      "--batch-size-per-replica 16 --eval-every 1000 --checkpoint-dir",
      runs / "ck");
  const auto before =
      runs.summary_of(one_device(), what + Arguments{"--steps", "96", "--learning-rate", "0.01"});
  ASSERT_GE(before.at("test_accuracy"), 0.95);
  const auto after =
      runs.summary_of(parameter_servers({.workers = 4, .servers = 2}),
                      what + Arguments{"--steps", "98", "--resume", "--learning-rate", "0.0001"});
  EXPECT_GE(after.at("test_accuracy"), 0.95);
  EXPECT_NEAR(after.at("test_loss").get<double>(), before.at("test_loss").get<double>(), 0.1);
}

TEST(AMetricsFile, OfAnEarlierRunIsEmptiedByANewRunAndContinuedByAResumedOne) {
  TrainingRuns runs;
  const Arguments run =
      as_words("--model mlp --data synthetic:1x8x8:4:256 --metrics", runs / "m.jsonl");
  const auto where = parameter_servers({.workers = 2, .servers = 1});
  for (const char* folder : {"first", "second"}) {
    runs.train(where, run + Arguments{"--steps", "6", "--checkpoint-dir", runs / folder});
    EXPECT_EQ(metrics_lines(runs / "m.jsonl", "summary").size(), 1U) << folder;
  }
  runs.train(where,
             run + Arguments{"--steps", "9", "--checkpoint-dir", runs / "second", "--resume"});
  EXPECT_EQ(metrics_lines(runs / "m.jsonl", "summary").size(), 2U);
  EXPECT_EQ(summary_of(runs / "m.jsonl").at("steps"), 9);
}

}  // namespace
}  // namespace syncopate::test
