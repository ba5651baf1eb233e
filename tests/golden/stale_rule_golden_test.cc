// Compares 20 pushes of asynchronous workers under the rules for single stale gradients with
// make_stale_rule_golden.py. It has a program for each rule, written from the formula of its paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ps/shard/shard.h"
#include "ps/shard/stale_gradients.h"
#include "tests/golden/golden_file.h"

namespace syncopate::ps {
namespace {

constexpr int kWorkers = 3;
constexpr float kRate = 0.125F;
const OptimizerOptions kMomentum{.name = "momentum", .momentum = 0.9};

// The reason for 1e-5: both sides compute the same formula, in f32 and in f64.
constexpr double kTolerance = 1e-5;

using Block = std::vector<float>;

const GoldenFile& golden() {
  static const GoldenFile kFile =
      read_golden_file(std::filesystem::path(SYNCOPATE_GOLDEN_DIR) / "stale_rules.safetensors");
  return kFile;
}

Block tensor(const std::string& name) {
  const std::vector<double>& values = golden().tensors.at(name);
  return {values.begin(), values.end()};
}

ConsistencyOptions rule(std::string_view text) {
  ConsistencyOptions options{.consistency = Consistency::kAsync};
  set_staleness_rule(options, text, "--staleness-rule");
  return options;
}

// What the pushes of the golden runs do to a shard.
struct Outcome {
  std::vector<Block> values;  // after each push
  std::vector<bool> used;     // whether each push was applied
};

// Workers that minimise quadratics on a shard.
class Workers {
 public:
  // buckets: cut the values; a rule decides for each bucket.
  Workers(const OptimizerOptions& optimizer, const ConsistencyOptions& rule,
          std::vector<Bucket> buckets, int workers = kWorkers)
      : optimizer_(optimizer), rule_(rule), buckets_(std::move(buckets)), workers_(workers) {
    const Tensor values = make_host_tensor({size()}, DType::kF32);
    std::ranges::copy(start_, values.f32().begin());
    make_shard(values);
    for (WorkerId w = 0; w < kWorkers; ++w) {
      values_.push_back(start_);
      versions_.emplace_back(buckets_.size(), 1);
    }
  }

  // Makes the pushes [first, last) of the golden runs.
  void push(std::size_t first, std::size_t last, Outcome& outcome) {
    const std::vector<double>& pushes = golden().tensors.at("pushes");
    for (std::size_t j = first; j < last; ++j) {
      push_one(static_cast<WorkerId>(pushes[j]), j + 1, outcome);
    }
  }
  Outcome push_all() {
    Outcome outcome;
    push(0, golden().tensors.at("pushes").size(), outcome);
    return outcome;
  }

  // Continues on a new shard that is restored from a snapshot of the old one.
  void restart_shard() {
    const ShardSnapshot snapshot = shard_->snapshot();
    make_shard(make_host_tensor({size()}, DType::kF32));
    shard_->restore(snapshot);
    for (WorkerId w = 0; w < kWorkers; ++w) shard_->join(w, 1, 0);
  }

 private:
  std::int64_t size() const { return std::ssize(start_); }

  void make_shard(const Tensor& values) {
    shard_ =
        std::make_unique<Shard>(ArenaLayout({{.name = "x", .shape = {size()}}}), buckets_,
                                make_shard_optimizer(optimizer_, rule_, workers_), rule_, values);
    for (WorkerId w = 0; w < kWorkers; ++w) shard_->join(w, 1, 0);
  }

  void push_one(WorkerId worker, std::uint64_t sequence, Outcome& outcome) {
    const auto w = static_cast<std::size_t>(worker);
    const std::size_t n = start_.size();
    Block gradient(n);
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] = curvature_[w * n + i] * (values_[w][i] - centre_[w * n + i]);
    }
    bool is_used = true;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const auto begin = static_cast<std::size_t>(buckets_[b].begin);
      const auto count = static_cast<std::size_t>(buckets_[b].end - buckets_[b].begin);
      const std::span<const float> part = std::span(gradient).subspan(begin, count);
      shard_->push({.id = {worker, 1, sequence},
                    .bucket = static_cast<BucketId>(b),
                    .version = versions_[w][b],
                    .learning_rate = kRate,
                    .gradient = {.codec = Codec::kF32,
                                 .num_elements = static_cast<std::int64_t>(count),
                                 .bytes = std::as_bytes(part)},
                    .values = std::span(values_[w]).subspan(begin, count)});
      std::vector<ShardEvent> events;
      shard_->work(static_cast<BucketId>(b), events);
      ASSERT_EQ(events.size(), 2U);
      is_used = is_used && events.front().kind == ShardEvent::Kind::kApplied;
      versions_[w][b] = events.back().version;
    }
    const std::span<const float> all = shard_->values().f32();
    outcome.values.emplace_back(all.begin(), all.end());
    outcome.used.push_back(is_used);
  }

  const OptimizerOptions optimizer_;
  const ConsistencyOptions rule_;
  const std::vector<Bucket> buckets_;
  const int workers_;
  const Block start_ = tensor("start");
  const Block curvature_ = tensor("curvature");
  const Block centre_ = tensor("centre");
  std::unique_ptr<Shard> shard_;
  std::vector<Block> values_;                         // as each worker received them
  std::vector<std::vector<std::uint64_t>> versions_;  // of them, by worker and bucket
};

const std::vector<Bucket> kWhole = {{0, 37}};

Outcome run_of(const OptimizerOptions& optimizer, std::string_view text,
               const std::vector<Bucket>& buckets = kWhole) {
  return Workers(optimizer, rule(text), buckets).push_all();
}

// Expects the values after each push to be near the golden values `name`, and the same pushes to be
// dropped.
void expect_golden(const std::string& name, const Outcome& outcome) {
  const std::vector<double>& expected = golden().tensors.at(name);
  const std::vector<double>& used = golden().tensors.at(name + "-used");
  ASSERT_EQ(outcome.values.size(), used.size());
  const std::size_t n = outcome.values.front().size();
  for (std::size_t j = 0; j < outcome.values.size(); ++j) {
    EXPECT_EQ(outcome.used[j], used[j] != 0.0) << name << ", push " << j + 1;
    double difference = 0.0;
    double norm = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      difference += std::pow(outcome.values[j][i] - expected[j * n + i], 2);
      norm += std::pow(expected[j * n + i], 2);
    }
    ASSERT_LT(std::sqrt(difference / norm), kTolerance) << name << ", push " << j + 1;
  }
}

TEST(StaleRuleGolden, RingmasterDropsGradientsAsItsPaper) {
  expect_golden("ringmaster", run_of({}, "ringmaster:2"));
}

TEST(StaleRuleGolden, RennalaUpdatesByMeansAsItsPaper) {
  expect_golden("rennala", run_of({}, "rennala:3"));
  expect_golden("rennala-momentum", run_of(kMomentum, "rennala:2"));
}

TEST(StaleRuleGolden, OrderedMomentumPutsGradientsIntoTheirPlaces) {
  expect_golden("ordered-momentum", run_of(kMomentum, "ordered-momentum"));
}

TEST(StaleRules, KeepTheBitsOfAsynchronousUpdatesWhereTheyChangeNothing) {
  const Outcome plain = run_of(kMomentum, "none");
  EXPECT_EQ(run_of(kMomentum, "ringmaster:2147483648").values, plain.values);
  // Both use only gradients of the current values.
  EXPECT_EQ(run_of(kMomentum, "rennala:1").values, run_of(kMomentum, "ringmaster:1").values);
}

TEST(StaleRules, DoNotDependOnTheBuckets) {
  const std::vector<Bucket> cut = {{0, 5}, {5, 6}, {6, 37}};
  for (const std::string_view text : {"ringmaster:2", "rennala:3", "ordered-momentum"}) {
    EXPECT_EQ(run_of(kMomentum, text, cut).values, run_of(kMomentum, text).values) << text;
  }
}

TEST(StaleRules, ContinueFromASnapshotAfterAnyPush) {
  const std::size_t pushes = golden().tensors.at("pushes").size();
  for (const std::string_view text : {"ringmaster:2", "rennala:3", "ordered-momentum"}) {
    const Outcome whole = run_of(kMomentum, text);
    for (std::size_t after = 0; after < pushes; ++after) {
      Workers workers(kMomentum, rule(text), kWhole);
      Outcome outcome;
      workers.push(0, after, outcome);
      workers.restart_shard();
      workers.push(after, pushes, outcome);
      ASSERT_EQ(outcome.values, whole.values) << text << ", snapshot after push " << after;
    }
  }
}

TEST(OrderedMomentum, OfOneWorkerIsMomentumBitForBit) {
  // One worker: every gradient is one of the current values.
  const auto values_with = [](std::string_view text) {
    std::vector<Block> all;
    OptimizerOptions options = kMomentum;
    options.weight_decay = 0.01;
    options.average_decay = 0.9;
    const auto optimizer = make_shard_optimizer(options, rule(text), 1);
    Block values = tensor("start");
    std::vector<Block> slots(optimizer->slot_names().size(), Block(values.size()));
    const std::vector<std::span<float>> spans(slots.begin(), slots.end());
    for (std::int64_t step = 1; step <= 20; ++step) {
      Block gradient = values;
      for (float& g : gradient) g = 0.7F * g - 0.3F;
      optimizer->update({.learning_rate = kRate, .step = step, .read = step}, values, gradient,
                        spans, true);
      all.push_back(values);
      all.insert(all.end(), slots.begin(), slots.end());
    }
    return all;
  };
  EXPECT_EQ(values_with("ordered-momentum"), values_with("none"));
}

}  // namespace
}  // namespace syncopate::ps
