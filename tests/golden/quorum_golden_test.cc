// Compares 20 merges of displacements by quorum and grace with make_quorum_golden.py, which has a
// program of its own for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/optim/outer_rule.h"
#include "ps/shard/shard.h"
#include "tests/golden/golden_file.h"

namespace syncopate::ps {
namespace {

constexpr int kWorkers = 4;
constexpr int kSteps = 3;
constexpr float kRate = 0.125F;
constexpr float kOuterRate = 0.7F;
constexpr std::size_t kMerges = 20;
// The reason for 1e-5: both sides compute the same formula, in f32 and in f64.
constexpr double kTolerance = 1e-5;

using Block = std::vector<float>;

const std::vector<double>& golden(const std::string& name) {
  static const GoldenFile kFile =
      read_golden_file(std::filesystem::path(SYNCOPATE_GOLDEN_DIR) / "quorum.safetensors");
  return kFile.tensors.at(name);
}

Block block(const std::string& name) { return {golden(name).begin(), golden(name).end()}; }

ShardTime time_of(double ms) { return std::chrono::milliseconds(static_cast<std::int64_t>(ms)); }

struct Merge {
  ShardTime at{0};
  std::set<WorkerId> workers;
  Block values;  // after it
};

// Workers that minimise quadratics in rounds, on a shard with Nesterov momentum.
class Rounds {
 public:
  Rounds(int quorum, double grace, std::vector<Bucket> buckets) : buckets_(std::move(buckets)) {
    const ConsistencyOptions rule{
        .consistency = Consistency::kQuorum, .quorum = quorum, .grace = grace};
    const Tensor values = make_host_tensor({std::ssize(start_)}, DType::kF32);
    std::ranges::copy(start_, values.f32().begin());
    shard_ = std::make_unique<Shard>(
        ArenaLayout({{.name = "x", .shape = {std::ssize(start_)}}}), buckets_,
        make_outer_rule({.learning_rate = kOuterRate, .momentum = 0.9, .nesterov = true}), rule,
        values);
    for (WorkerId w = 0; w < kWorkers; ++w) {
      shard_->join(w, 1, 0);
      workers_[static_cast<std::size_t>(w)].values = start_;
      end_round_later(w, ShardTime(0));
    }
  }

  // Lets the workers train until there are as many merges as in the golden runs.
  std::vector<Merge> run() {
    while (merges_.size() < kMerges) {
      const auto next = std::ranges::min_element(workers_, {}, &Worker::arrives);
      const auto deadline = shard_->next_deadline();
      if (deadline && *deadline < next->arrives) {
        shard_->advance_to(*deadline);
        work(*deadline);
      } else {
        const ShardTime now = std::exchange(next->arrives, ShardTime::max());
        push(static_cast<WorkerId>(next - workers_.begin()), now);
        work(now);
      }
    }
    return merges_;
  }

 private:
  struct Worker {
    Block values;    // as received
    Block gradient;  // the displacement that is being merged
    std::uint64_t rounds = 0;
    ShardTime arrives{0};
  };

  void end_round_later(WorkerId w, ShardTime now) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    worker.arrives = now + time_of(golden("rounds")[of_round(w)]);
  }
  std::size_t of_round(WorkerId w) const {
    return static_cast<std::size_t>(w) * 3 * kMerges +
           static_cast<std::size_t>(workers_[static_cast<std::size_t>(w)].rounds);
  }

  void push(WorkerId w, ShardTime now) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    const std::size_t n = start_.size();
    Block y = worker.values;
    for (int step = 0; step < kSteps; ++step) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = static_cast<std::size_t>(w) * n + i;
        y[i] -= kRate * curvature_[at] * (y[i] - centre_[at]);
      }
    }
    worker.gradient.resize(n);
    displacement(worker.gradient, worker.values, y, 1.0F);
    const auto samples = static_cast<std::int64_t>(golden("samples")[of_round(w)]);
    ++worker.rounds;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const auto begin = static_cast<std::size_t>(buckets_[b].begin);
      const auto count = static_cast<std::size_t>(buckets_[b].end - buckets_[b].begin);
      const auto part = std::span<const float>(worker.gradient).subspan(begin, count);
      shard_->push({.id = {w, 1, worker.rounds},
                    .bucket = static_cast<BucketId>(b),
                    .version = 1,
                    .learning_rate = kOuterRate,
                    .arrived = now,
                    .samples = samples,
                    .gradient = {.codec = Codec::kF32,
                                 .num_elements = static_cast<std::int64_t>(count),
                                 .bytes = std::as_bytes(part)},
                    .values = std::span(worker.values).subspan(begin, count)});
    }
  }

  void work(ShardTime now) {
    std::vector<ShardEvent> events;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      shard_->work(static_cast<BucketId>(b), events);
    }
    Merge merge{.at = now, .workers = {}, .values = {}};
    for (const ShardEvent& event : events) {
      if (event.kind == ShardEvent::Kind::kAnswered) merge.workers.insert(event.worker);
    }
    if (merge.workers.empty()) return;
    const std::span<const float> values = shard_->values().f32();
    merge.values.assign(values.begin(), values.end());
    for (const WorkerId w : merge.workers) end_round_later(w, now);
    merges_.push_back(std::move(merge));
  }

  const std::vector<Bucket> buckets_;
  const Block start_ = block("start");
  const Block curvature_ = block("curvature");
  const Block centre_ = block("centre");
  std::unique_ptr<Shard> shard_;
  std::vector<Worker> workers_{kWorkers};
  std::vector<Merge> merges_;
};

const std::vector<Bucket> kWhole = {{0, 37}};
const std::vector<Bucket> kCut = {{0, 5}, {5, 6}, {6, 37}};
constexpr double kForEver = 1000.0;

void expect_golden(const std::string& name, const std::vector<Merge>& merges) {
  const std::vector<double>& expected = golden(name);
  for (std::size_t m = 0; m < kMerges; ++m) {
    const Block& values = merges[m].values;
    double difference = 0.0;
    double norm = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(values[i] - expected[m * values.size() + i], 2);
      norm += std::pow(expected[m * values.size() + i], 2);
    }
    ASSERT_LT(std::sqrt(difference / norm), kTolerance) << name << ", merge " << m + 1;
  }
}

std::vector<Block> values_of(const std::vector<Merge>& merges) {
  std::vector<Block> values;
  for (const Merge& merge : merges) values.push_back(merge.values);
  return values;
}

TEST(QuorumGolden, MergesWhatArrivesTogetherAsTheFormula) {
  const std::vector<Merge> merges = Rounds(2, 0.03, kWhole).run();
  const std::vector<double>& expected = golden("quorum-merges");
  for (std::size_t m = 0; m < kMerges; ++m) {
    const double* const row = expected.data() + m * (1 + kWorkers);
    EXPECT_EQ(merges[m].at, time_of(row[0])) << "merge " << m + 1;
    for (WorkerId w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(merges[m].workers.contains(w), row[1 + w] != 0.0) << "merge " << m + 1;
    }
  }
  expect_golden("quorum", merges);
}

TEST(QuorumGolden, OfAllWorkersIsSynchronous) {
  expect_golden("all", Rounds(0, 0.0, kWhole).run());
}

TEST(Quorum, OfAllWorkersHasTheBitsOfInfiniteGrace) {
  const auto expected = values_of(Rounds(0, 0.0, kWhole).run());
  EXPECT_EQ(values_of(Rounds(kWorkers, 0.0, kWhole).run()), expected);
  EXPECT_EQ(values_of(Rounds(2, kForEver, kWhole).run()), expected);
}

TEST(Quorum, DoesNotDependOnTheBuckets) {
  EXPECT_EQ(values_of(Rounds(2, 0.03, kCut).run()), values_of(Rounds(2, 0.03, kWhole).run()));
}

}  // namespace
}  // namespace syncopate::ps
