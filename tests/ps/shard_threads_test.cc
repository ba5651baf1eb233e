// Several workers' threads on one shard: each pushes as it goes, and all update together.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "models/base/deadline.h"
#include "ps/shard.h"
#include "tests/ps/shard_case.h"

namespace syncopate {
namespace {

constexpr int kWorkers = 3;
constexpr std::int64_t kSteps = 20;

class WorkerThreads {
 public:
  // gradients[step - 1][worker]
  WorkerThreads(Shard& shard, std::span<const std::vector<Gradient>> gradients)
      : shard_(shard), gradients_(gradients) {}

  void run() {
    std::vector<std::jthread> threads;
    threads.reserve(kWorkers);
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([this, worker] {
        for (std::int64_t step = 1; step <= kSteps; ++step) {
          if (!run_step(worker, step)) return;
        }
      });
    }
  }

  int completing_pushes() const { return completing_pushes_; }
  int ending_updates() const { return ending_updates_; }
  bool late() const { return late_; }
  bool saw_half_of_an_update() const { return saw_half_; }

 private:
  bool run_step(int worker, std::int64_t step) {
    const Gradient& gradient =
        gradients_[static_cast<std::size_t>(step - 1)][static_cast<std::size_t>(worker)];
    const auto version = static_cast<std::uint64_t>(step);
    const auto buckets = static_cast<BucketId>(shard_.buckets().size());
    for (BucketId bucket = 0; bucket < buckets; ++bucket) {
      if (shard_.read(bucket).version != version) saw_half_ = true;
      if (shard_.push(worker, bucket, version,
                      part_of(gradient, shard_.buckets()[static_cast<std::size_t>(bucket)]))) {
        ++completing_pushes_;
      }
    }
    for (BucketId bucket = 0; bucket < buckets; ++bucket) {
      while (shard_.read(bucket).version == version) {
        if (deadline_.passed()) {
          late_ = true;
          return false;
        }
        help(bucket, version, step);
      }
    }
    return true;
  }

  void help(BucketId bucket, std::uint64_t version, std::int64_t step) {
    const std::optional<Shard::Piece> piece = shard_.claim(bucket, version, 1024);
    if (!piece) {
      std::this_thread::yield();
    } else if (shard_.update(*piece, update_step(step))) {
      ++ending_updates_;
    }
  }

  Shard& shard_;
  const std::span<const std::vector<Gradient>> gradients_;
  const Deadline deadline_ = Deadline::after(std::chrono::seconds(60));
  std::atomic<int> completing_pushes_{0};
  std::atomic<int> ending_updates_{0};
  std::atomic<bool> late_{false};
  std::atomic<bool> saw_half_{false};
};

TEST(ShardOfSeveralThreads, GivesTheBitsOfOneThread) {
  std::vector<std::vector<Gradient>> gradients;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    gradients.push_back(random_gradients(kWorkers, step));
  }
  const auto shard = make_shard(decaying("adam"), kWorkers);
  WorkerThreads workers(*shard, gradients);
  workers.run();
  ASSERT_FALSE(workers.late()) << "an update never ended";
  EXPECT_FALSE(workers.saw_half_of_an_update());

  Reference reference(decaying("adam"));
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    reference.run_step(gradients[static_cast<std::size_t>(step - 1)], update_step(step));
  }
  EXPECT_TRUE(same_bits(shard->values(), reference.values()));
  EXPECT_TRUE(same_bits(shard->slots(), reference.slots()));
  // Whoever waits is told once per bucket and step.
  const int updates = static_cast<int>(shard->buckets().size()) * static_cast<int>(kSteps);
  EXPECT_EQ(workers.completing_pushes(), updates);
  EXPECT_EQ(workers.ending_updates(), updates);
}

}  // namespace
}  // namespace syncopate
