// Tests threads of several workers on one shard: each pushes at its own pace, and all do the
// updates.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "models/base/deadline.h"
#include "ps/shard/shard.h"
#include "tests/ps/shard/one_value.h"
#include "tests/ps/shard/shard_case.h"

namespace syncopate::ps {
namespace {

constexpr int kWorkers = 3;
constexpr std::int64_t kThreadSteps = 20;

class WorkerThreads {
 public:
  // The gradients are indexed as gradients[step - 1][worker].
  WorkerThreads(Shard& shard, std::span<const std::vector<Gradient>> gradients)
      : shard_(shard), gradients_(gradients) {}

  void run() {
    std::vector<std::jthread> threads;
    threads.reserve(kWorkers);
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([this, worker] {
        for (std::int64_t step = 1; step <= kThreadSteps; ++step) {
          if (!run_step(worker, step)) return;
        }
      });
    }
  }

  int applied() const { return applied_; }
  bool late() const { return late_; }
  bool saw_half_of_an_update() const { return saw_half_; }

 private:
  bool run_step(int worker, std::int64_t step) {
    const Gradient& gradient =
        gradients_[static_cast<std::size_t>(step - 1)][static_cast<std::size_t>(worker)];
    const auto version = static_cast<std::uint64_t>(step);
    const auto buckets = static_cast<BucketId>(shard_.buckets().size());
    for (BucketId bucket = 0; bucket < buckets; ++bucket) {
      if (shard_.view(bucket).version != version) saw_half_ = true;
      shard_.push(sync_push(worker, bucket, version,
                            part_of(gradient, shard_.buckets()[static_cast<std::size_t>(bucket)]),
                            update_step(step).learning_rate));
    }
    for (BucketId bucket = 0; bucket < buckets; ++bucket) {
      while (shard_.view(bucket).version == version) {
        if (deadline_.passed()) {
          late_ = true;
          return false;
        }
        help(bucket);
      }
    }
    return true;
  }

  void help(BucketId bucket) {
    std::vector<ShardEvent> events;
    const std::optional<Piece> piece = shard_.claim(bucket, 1024);
    if (!piece) {
      std::this_thread::yield();
    } else {
      shard_.update(*piece);
      shard_.take_events(events);
      applied_ += static_cast<int>(events.size());
    }
  }

  Shard& shard_;
  const std::span<const std::vector<Gradient>> gradients_;
  const Deadline deadline_ = Deadline::after(std::chrono::seconds(60));
  std::atomic<int> applied_{0};
  std::atomic<bool> late_{false};
  std::atomic<bool> saw_half_{false};
};

TEST(ShardOfSeveralThreads, GivesTheBitsOfOneThread) {
  std::vector<std::vector<Gradient>> gradients;
  for (std::int64_t step = 1; step <= kThreadSteps; ++step) {
    gradients.push_back(random_gradients(kWorkers, step));
  }
  const auto shard = make_shard(decaying("adam"), kWorkers);
  WorkerThreads workers(*shard, gradients);
  workers.run();
  ASSERT_FALSE(workers.late()) << "an update did not end";
  EXPECT_FALSE(workers.saw_half_of_an_update());

  Reference reference(decaying("adam"));
  for (std::int64_t step = 1; step <= kThreadSteps; ++step) {
    reference.run_step(gradients[static_cast<std::size_t>(step - 1)], update_step(step));
  }
  EXPECT_TRUE(same_bits(shard->values(), reference.values()));
  EXPECT_TRUE(same_bits(shard->slots(), reference.slots()));
  // Every push must be reported as applied once.
  const int updates = static_cast<int>(shard->buckets().size()) * static_cast<int>(kThreadSteps);
  EXPECT_EQ(workers.applied(), updates * kWorkers);
}

// Each thread is an asynchronous worker that also does any work that is due.
class FreeWorkers {
 public:
  static constexpr int kFreeWorkers = 4;
  static constexpr std::uint64_t kFreeSteps = 50;

  explicit FreeWorkers(Shard& shard)
      : shard_(shard), buckets_(static_cast<BucketId>(shard.buckets().size())) {
    for (auto& answered : answered_) {
      answered = std::vector<std::atomic<std::uint64_t>>(shard.buckets().size());
    }
  }

  void run() {
    std::vector<std::jthread> threads;
    threads.reserve(kFreeWorkers);
    for (WorkerId worker = 0; worker < kFreeWorkers; ++worker) {
      threads.emplace_back([this, worker] { train(worker); });
    }
  }

  bool late() const { return late_; }
  int applied() const { return applied_; }

 private:
  void train(WorkerId worker) {
    Gradient gradient(static_cast<std::size_t>(small_layout().total()), 1.0F);
    Gradient values(gradient.size());
    std::vector<std::uint64_t> versions(static_cast<std::size_t>(buckets_), 1);
    for (std::uint64_t step = 1; step <= kFreeSteps; ++step) {
      for (BucketId bucket = 0; bucket < buckets_; ++bucket) {
        const Bucket range = shard_.buckets()[static_cast<std::size_t>(bucket)];
        PushRequest push = sync_push(worker, bucket, versions[static_cast<std::size_t>(bucket)],
                                     part_of(gradient, range), 1.0F);
        push.id.sequence = step;
        push.values = std::span(values).subspan(static_cast<std::size_t>(range.begin),
                                                static_cast<std::size_t>(range.end - range.begin));
        push.token = step;
        shard_.push(push);
        help(bucket);
      }
      for (BucketId bucket = 0; bucket < buckets_; ++bucket) {
        const auto& answered = answered_[static_cast<std::size_t>(worker)];
        while (answered[static_cast<std::size_t>(bucket)].load(std::memory_order_acquire) < step) {
          if (deadline_.passed()) late_ = true;
          if (late_) return;
          if (!help(bucket)) std::this_thread::yield();
        }
      }
      // The memory of the answer belongs to this thread: no other thread writes to it.
      if (values[static_cast<std::size_t>(small_layout().offset(0))] >= 0.0F) late_ = true;
    }
    shard_.leave(worker, 1);
    for (BucketId bucket = 0; bucket < buckets_; ++bucket) help(bucket);
  }

  bool help(BucketId bucket) {
    const std::optional<Piece> piece = shard_.claim(bucket, 1024);
    if (!piece) return false;
    std::vector<ShardEvent> events;
    shard_.update(*piece);
    shard_.take_events(events);
    for (const ShardEvent& event : events) {
      if (event.kind == ShardEvent::Kind::kApplied) ++applied_;
      if (event.kind != ShardEvent::Kind::kAnswered) continue;
      // Perhaps of a bucket that another thread has worked on.
      answered_[static_cast<std::size_t>(event.worker)][static_cast<std::size_t>(event.bucket)]
          .store(event.sequence, std::memory_order_release);
    }
    return true;
  }

  Shard& shard_;
  const BucketId buckets_;
  const Deadline deadline_ = Deadline::after(std::chrono::seconds(60));
  std::array<std::vector<std::atomic<std::uint64_t>>, kFreeWorkers> answered_;  // indexed by bucket
  std::atomic<int> applied_{0};
  std::atomic<bool> late_{false};
};

TEST(ShardOfSeveralThreads, AppliesEachPushOfAsynchronousWorkersOnce) {
  for (const ConsistencyOptions& options :
       {ConsistencyOptions{.consistency = Consistency::kAsync},
        ConsistencyOptions{.consistency = Consistency::kAsync,
        .staleness_rule = StalenessRule::kDelayCompensationAdaptive,
        .compensation = 0.0F},
        ConsistencyOptions{.consistency = Consistency::kSsp, .max_staleness = 1}}) {
    Shard shard(small_layout(), small_buckets(), make_optimizer({}), options,
                make_host_tensor({small_layout().total()}, DType::kF32));
    for (WorkerId worker = 0; worker < FreeWorkers::kFreeWorkers; ++worker) {
      shard.join(worker, 1, 0);
    }
    FreeWorkers workers(shard);
    workers.run();
    ASSERT_FALSE(workers.late()) << "an answer did not arrive";
    const int pushes = FreeWorkers::kFreeWorkers *
                       static_cast<int>(FreeWorkers::kFreeSteps * shard.buckets().size());
    EXPECT_EQ(workers.applied(), pushes);
    const auto expected = -static_cast<float>(FreeWorkers::kFreeWorkers * FreeWorkers::kFreeSteps);
    for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
      EXPECT_EQ(shard.view(static_cast<BucketId>(b)).values.front(), expected) << b;
      EXPECT_EQ(shard.view(static_cast<BucketId>(b)).version, 201U) << b;
    }
  }
}

// Workers push to a bucket of one value and update it, so that updates by different threads follow
// each other closely. Only the calling thread takes the events.
class UpdatingWorkers {
 public:
  static constexpr WorkerId kUpdating = 3;
  static constexpr std::size_t kPushes = 30000;
  static constexpr std::uint64_t kMostWaiting = 16;

  // Returns the events of all pushes, in the order of the shard; only a part of them if the events
  // do not arrive within a minute.
  std::vector<ShardEvent> run() {
    std::vector<std::jthread> threads;
    threads.reserve(kUpdating);
    for (WorkerId worker = 0; worker < kUpdating; ++worker) {
      threads.emplace_back([this, worker] { train(worker); });
    }
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    std::vector<ShardEvent> events;
    while (events.size() < 2 * kUpdating * kPushes && !deadline.passed()) {
      value_.shard().take_events(events);
    }
    return events;
  }

 private:
  void train(WorkerId worker) {
    Shard& shard = value_.shard();
    start_.arrive_and_wait();
    for (std::size_t i = 0; i < kPushes; ++i) {
      PushRequest push = sync_push(worker, 0, 1, gradient_, 1.0F);
      push.id.sequence = i + 1;
      push.values = std::span(answers_[static_cast<std::size_t>(worker)]).subspan(i, 1);
      shard.push(push);
      ++pushed_;
      // Few pushes may wait, because the shard searches all waiting pushes.
      do {
        while (const std::optional<Piece> piece = shard.claim(0)) shard.update(*piece);
      } while (pushed_ > shard.view(0).version + kMostWaiting);
    }
  }

  OneValue value_{kAsync, kUpdating};
  std::latch start_{kUpdating};
  std::atomic<std::uint64_t> pushed_ = 0;
  const Gradient gradient_{1.0F};
  std::vector<Gradient> answers_ = std::vector(kUpdating, Gradient(kPushes));  // by worker
};

TEST(ShardOfSeveralThreads, KeepsTheOrderOfTheEventsOfABucket) {
  const std::vector<ShardEvent> events = UpdatingWorkers().run();
  ASSERT_EQ(events.size(), 2 * UpdatingWorkers::kUpdating * UpdatingWorkers::kPushes);
  std::array<std::uint64_t, UpdatingWorkers::kUpdating> applied{};
  std::uint64_t version = 1;
  for (const ShardEvent& event : events) {
    ASSERT_GE(event.version, version);
    version = event.version;
    std::uint64_t& last = applied[static_cast<std::size_t>(event.worker)];
    if (event.kind == ShardEvent::Kind::kApplied) {
      ASSERT_EQ(event.sequence, ++last);
    } else {
      ASSERT_EQ(event.kind, ShardEvent::Kind::kAnswered);
      ASSERT_LE(event.sequence, last) << "answered before it was applied";
    }
  }
}

}  // namespace
}  // namespace syncopate::ps
