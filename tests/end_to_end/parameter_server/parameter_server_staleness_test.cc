// Tests asynchronous workers: how stale their gradients are, what bounds the staleness, and that
// the network learns nevertheless, with every content of a push and every partition of the
// variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "ps/server/order_record.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Arguments kSmall{"--model", "mlp", "--data", "synthetic:1x28x28:10:2400"};

std::int64_t pushes(const nlohmann::json& summary) {
  std::int64_t sum = 0;
  for (const auto& worker : summary.at("staleness")) {
    for (const std::int64_t count : worker.at("counts")) sum += count;
  }
  return sum;
}

TEST(FourAsynchronousWorkers, PushGradientsThatAreThreeUpdatesOldOnAverage) {
  TrainingRuns runs;
  const auto one_step = runs.summary_of(parameter_servers({.workers = 1, .servers = 2}),
                                        kSmall + Arguments{"--steps", "1"});
  const std::int64_t buckets = pushes(one_step);
  EXPECT_GT(buckets, 1);
  const auto summary = runs.summary_of(parameter_servers({.workers = 4, .servers = 2}),
                                       kSmall + Arguments{"--steps", "1600", "--eval-every", "0"});
  // Between a worker's pull and its push each of the three others pushes once on average, however
  // fast that worker is; only at the beginning and at the end some workers have no push under way.
  // (A worker that evaluates in between pulls once more.)
  EXPECT_NEAR(summary.at("staleness_mean").get<double>(), 3.0, 0.05);
  EXPECT_EQ(summary.at("staleness").size(), 4U);
  EXPECT_EQ(pushes(summary), 1600 * buckets) << "each gradient of each step, once";
  EXPECT_EQ(summary.at("replicas"), 4);
}

// The other workers train while one worker evaluates, so the values that the servers returned for
// its last push are old afterwards.
TEST(AWorkerThatEvaluated, PushesAGradientOfValuesThatItPulledAfterwards) {
  TrainingRuns runs;
  runs.train(parameter_servers({.workers = 3, .servers = 1}),
             kSmall + as_words("--steps 120 --eval-every-steps 30 --record", runs / "order"));
  int evaluations = 0;
  std::map<int, const ps::OrderEntry*> pulled;
  const auto record = ps::read_order_record(runs / "order.shard0");
  for (const ps::OrderEntry& entry : record.entries) {
    if (entry.bucket != 0) continue;
    if (entry.kind == ps::OrderEntry::Kind::kAnswered && entry.sequence == 0) {
      pulled[entry.worker] = &entry;
    }
    if (entry.kind != ps::OrderEntry::Kind::kApplied || !pulled.contains(entry.worker)) continue;
    EXPECT_EQ(entry.version_read, pulled[entry.worker]->version_after) << entry.sequence;
    evaluations += entry.sequence > 1 ? 1 : 0;  // no evaluation precedes a worker's first step
    pulled.erase(entry.worker);
  }
  EXPECT_GE(evaluations, 1) << "no worker pulled after an evaluation";
}

class StaleSynchronousWorkers : public testing::TestWithParam<int> {};

// Returns the maximum number of steps that a worker was ahead of the slowest worker when its push
// was applied, while all workers had pushes to come.
std::uint64_t largest_lead(const ps::OrderRecord& record, int workers) {
  std::map<int, std::uint64_t> last;
  for (const ps::OrderEntry& entry : record.entries) {
    if (entry.kind == ps::OrderEntry::Kind::kApplied && entry.bucket == 0) {
      last[entry.worker] = entry.sequence;
    }
  }
  std::map<int, std::uint64_t> clocks;
  std::uint64_t lead = 0;
  for (int w = 0; w < workers; ++w) clocks[w] = 0;
  for (const ps::OrderEntry& entry : record.entries) {
    if (entry.kind != ps::OrderEntry::Kind::kApplied || entry.bucket != 0) continue;
    const std::uint64_t slowest =
        std::min_element(clocks.begin(), clocks.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    // A worker computes a push with values that the server sent after it had applied the worker's
    // previous push.
    lead = std::max(lead, entry.sequence - 1 - std::min(slowest, entry.sequence - 1));
    clocks[entry.worker] = entry.sequence;
    if (entry.sequence == last[entry.worker]) break;  // an ended worker does not bound the others
  }
  return lead;
}

TEST_P(StaleSynchronousWorkers, AreNeverFurtherAheadThanAllowed) {
  TrainingRuns runs;
  const int workers = 4;
  runs.train(
      parameter_servers({.workers = workers, .servers = 1}),
      kSmall + as_words("--consistency ssp --max-staleness", std::to_string(GetParam()),
                        "--steps 400 --service-time exponential:2 --record", runs / "order"));
  const auto record = ps::read_order_record(runs / "order.shard0");
  const std::uint64_t lead = largest_lead(record, workers);
  EXPECT_LE(lead, static_cast<std::uint64_t>(GetParam()));
  if (GetParam() == 1) {
    EXPECT_EQ(lead, 1U) << "the bound was never reached: nothing was tested";
  }
}

INSTANTIATE_TEST_SUITE_P(By, StaleSynchronousWorkers, testing::Values(0, 1));

// Every step that a worker computes is applied or dropped; the samples of a dropped one are trained
// again.
void expect_each_batch_once(const TrainingRuns& runs, std::size_t batches) {
  const auto record = ps::read_order_record(runs / "order.shard0");
  std::map<std::pair<std::int64_t, std::int64_t>, int> times;
  std::int64_t dropped = 0;
  for (const ps::OrderEntry& entry : record.entries) {
    if (entry.lanes == 0) continue;
    if (entry.kind == ps::OrderEntry::Kind::kDropped) ++dropped;
    if (entry.kind == ps::OrderEntry::Kind::kApplied) {
      ++times[{entry.batch.epoch, entry.batch.begin}];
    }
  }
  EXPECT_EQ(times.size(), batches);
  for (const auto& [batch, count] : times) EXPECT_EQ(count, 1) << "sample " << batch.second;
  std::int64_t whole = 0;
  std::int64_t in_part = 0;
  for (const auto& line : runs.lines("worker")) {
    whole += line.at("dropped_steps").get<std::int64_t>();
    in_part += line.at("dropped_in_part").get<std::int64_t>();
  }
  EXPECT_GT(dropped, 0) << "no gradient was late: nothing was tested";
  EXPECT_LE(whole, dropped) << "shard 0 decides about the samples";
  EXPECT_LE(dropped, whole + in_part);
}

TEST(DroppedGradients, GiveTheirSamplesBackUnderRingmaster) {
  TrainingRuns runs;
  const auto summary =
      runs.summary_of(parameter_servers({.workers = 3, .servers = 2}),
                      kSmall + as_words("--steps 120 --eval-every 0 --service-time exponential:2 "
                                        "--staleness-rule ringmaster:2 --record",
                                        runs / "order"));
  EXPECT_EQ(summary.at("steps"), 120);
  EXPECT_LE(summary.at("staleness_max"), 1);
  expect_each_batch_once(runs, 120);
}

TEST(DroppedGradients, GiveTheirSamplesBackUnderRennala) {
  TrainingRuns runs;
  const auto result =
      runs.train(parameter_servers({.workers = 3, .servers = 2}),
                 kSmall + as_words("--steps 30 --eval-every 0 --service-time exponential:2 "
                                   "--staleness-rule rennala:4 --record",
                                   runs / "order"));
  EXPECT_EQ(runs.summary().at("steps"), 30);
  EXPECT_EQ(runs.summary().at("samples"), 4 * 30 * 64);
  expect_each_batch_once(runs, 120);
  EXPECT_TRUE(contains(result.err + result.out, " came too late and were dropped, and "));
}

TEST(OrderedMomentum, OfOneWorkerIsThatOfOneDevice) {
  TrainingRuns runs;
  const Arguments what = kSmall + as_words("--steps 20 --optimizer momentum");
  const auto alone = runs.summary_of(one_device(), what);
  const auto served = runs.summary_of(parameter_servers({.workers = 1, .servers = 2}),
                                      what + as_words("--staleness-rule ordered-momentum"));
  EXPECT_EQ(served.at("weights_hash"), alone.at("weights_hash"));
}

TEST(APartition, ChangesOnlyThePlacementOfVariables) {
  TrainingRuns runs;
  const Arguments what = kSmall + Arguments{"--steps", "12"};
  const auto alone = runs.summary_of(one_device(), what);
  for (const char* partition : {"fixed:2", "min-size:4096", "max-size:20000"}) {
    const auto served = runs.summary_of(parameter_servers({.workers = 1, .servers = 2}),
                                        what + Arguments{"--partition", partition});
    EXPECT_EQ(served.at("weights_hash"), alone.at("weights_hash")) << partition;
  }
}

class Digits : public testing::TestWithParam<Arguments> {};

TEST_P(Digits, AreLearntInAnEpoch) {
  if (SYNCOPATE_SANITIZED)
    GTEST_SKIP() << "too slow under a sanitizer; the optimised build runs it";
  TrainingRuns runs;
  // The learning rate falls to zero, because at a constant rate the last few stale gradients would
  // decide the measured accuracy.
  const auto summary = runs.summary_of(
      parameter_servers({.workers = 4, .servers = 2}),
      GetParam() +
          as_words("--model mnist-cnn --data digits --epochs 1 --lr-schedule cosine --cache-dir",
                   SYNCOPATE_TEST_CACHE));
  EXPECT_GE(summary.at("test_accuracy"), 0.95);
}

INSTANTIATE_TEST_SUITE_P(
    With, Digits,
    testing::Values(Arguments{"--compress", "bf16"}, Arguments{"--compress", "topk:0.05"},
                    // The inverse rule divides the learning rate by a push's staleness, near 3.
                    Arguments{"--learning-rate", "0.003", "--staleness-rule", "inverse"},
                    Arguments{"--staleness-rule", "dc"},
                    Arguments{"--staleness-rule", "dc-adaptive"},
                    Arguments{"--staleness-rule", "ringmaster:4"},
                    as_words("--optimizer momentum --learning-rate 0.005 --staleness-rule "
                             "ordered-momentum")),
    [](const auto& parameters) {
      std::string name = parameters.param.back();
      std::erase_if(name, [](unsigned char c) { return !std::isalnum(c); });
      return name;
    });

}  // namespace
}  // namespace syncopate::test
