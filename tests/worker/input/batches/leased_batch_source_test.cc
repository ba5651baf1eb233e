#include "worker/input/batches/leased_batch_source.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "models/base/errors.h"
#include "tests/worker/input/counting_dataset.h"

namespace syncopate {
namespace {

using Ranges = std::vector<ps::SampleRange>;

constexpr std::chrono::seconds kTimeout(10);

// A FakeLeaseSource stands in for the job that leases ranges of samples. After the given leases it
// returns no lease, throws an error, or waits until it is stopped.
class FakeLeaseSource {
 public:
  enum class End { kNothing, kError, kWait };
  explicit FakeLeaseSource(Ranges leases, End end = End::kNothing)
      : leases_(std::move(leases)), end_(end) {}

  LeaseSource hooks() {
    return {.next_lease = [this] { return next_lease(); }, .stop = [this] { stop(); }};
  }
  std::size_t given() const {
    const std::lock_guard lock(mutex_);
    return given_;
  }
  int stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  int ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  bool wait_until_asked(std::size_t times) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTimeout, [&] { return asked_ >= times; });
  }

 private:
  std::optional<ps::SampleRange> next_lease() {
    std::unique_lock lock(mutex_);
    EXPECT_FALSE(in_call_) << "two calls at a time";
    in_call_ = true;
    ++asked_;
    changed_.notify_all();
    if (given_ == leases_.size() && end_ == End::kWait) {
      changed_.wait(lock, [&] { return stopped_ > 0; });
    }
    in_call_ = false;
    if (given_ < leases_.size()) return leases_[given_++];
    ++ended_;
    if (end_ == End::kError) throw PeerError("parameter server 0 is gone");
    return std::nullopt;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    ++stopped_;
    changed_.notify_all();
  }

  const Ranges leases_;
  const End end_;
  mutable std::mutex mutex_;  // guards all following members
  mutable std::condition_variable changed_;
  std::size_t asked_ = 0;
  std::size_t given_ = 0;
  int ended_ = 0;
  int stopped_ = 0;
  bool in_call_ = false;
};

// Returns the whole epochs 0 to `epochs` - 1 in batches.
Ranges whole_epochs(std::int64_t epochs, std::int64_t size, std::int64_t batch) {
  Ranges ranges;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t begin = 0; begin < size; begin += batch) {
      ranges.push_back({epoch, begin, std::min(begin + batch, size)});
    }
  }
  return ranges;
}

TEST(LeasedBatchSource, SaysThatTheJobHasNoLeaseNow) {
  const CountingDataset dataset(100);
  FakeLeaseSource lease_source({{0, 0, 4}, {}}, FakeLeaseSource::End::kWait);
  LeasedBatchSource source(dataset, {.input = {.batch_size = 4}}, lease_source.hooks());
  EXPECT_TRUE(source.await_lease());
  source.next();
  EXPECT_FALSE(source.await_lease());
}

TEST(LeasedBatchSource, WaitsForALeaseThatComesAfterNone) {
  const CountingDataset dataset(100);
  FakeLeaseSource lease_source({{}, {0, 4, 8}, {}});
  LeasedBatchSource source(dataset, {.input = {.batch_size = 4}}, lease_source.hooks());
  ASSERT_NE(source.upcoming(), nullptr);
  EXPECT_EQ(*source.upcoming(), (ps::SampleRange{0, 4, 8}));
  source.next();
  EXPECT_FALSE(source.await_lease());
  EXPECT_EQ(source.upcoming(), nullptr);
}

TEST(LeasedBatchSource, GivesTheBatchesOfItsLeasesInOrder) {
  const CountingDataset dataset(100);
  const Ranges leases = {{0, 10, 14}, {0, 2, 4}, {3, 96, 100}, {1, 7, 8}};
  constexpr int kTuned = -1;
  for (const int threads : {1, 2, 8}) {
    for (const int prefetch : {0, 1, 6, kTuned}) {
      FakeLeaseSource lease_source(leases);
      InputOptions input{.batch_size = 4, .shuffle = false, .threads = threads};
      if (prefetch == kTuned) {
        input.autotune = {.threads = true, .prefetch = true, .cpus = threads};
      } else {
        input.prefetch = prefetch;
      }
      LeasedBatchSource source(dataset, {.input = input}, lease_source.hooks());
      for (const ps::SampleRange& lease : leases) {
        const ps::SampleRange* upcoming = source.upcoming();
        ASSERT_NE(upcoming, nullptr);
        EXPECT_EQ(*upcoming, lease);
        const Batch& batch = source.next();
        ASSERT_EQ(batch.num_samples, lease.end - lease.begin) << "short ones too";
        EXPECT_EQ(keys_of(batch).front(), make_key(InputOptions().seed, lease.epoch, lease.begin));
        EXPECT_EQ(batch.inputs[0].shape(), (Shape{batch.num_samples, 2, 3, 1}));
        EXPECT_EQ(labels_of(batch).front(), lease.begin);
        EXPECT_EQ(labels_of(batch).back(), lease.end - 1);
      }
      EXPECT_EQ(source.upcoming(), nullptr);
      EXPECT_EQ(source.upcoming(), nullptr);
      EXPECT_EQ(lease_source.ended(), 1) << "no lease is requested after the end";
      EXPECT_EQ(source.counters().batches, 4);
    }
  }
}

// The test compares shuffled and augmented batches over three epochs and their short last batches.
TEST(LeasedBatchSource, HasTheBitsOfABatchSourceOverTheSameSamples) {
  const CountingDataset dataset(38, {6, 6, 3});
  const InputOptions options{.batch_size = 8,
                             .seed = 7,
                             .drop_remainder = false,
                             .augment = Augment::kCropFlip,
                             .threads = 3};
  const auto expected = make_batch_source(dataset, options);
  const Ranges leases = whole_epochs(3, 38, 8);
  FakeLeaseSource lease_source(leases);
  LeasedBatchSource source(dataset, {.input = options}, lease_source.hooks());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const Batch& batch = source.next();
    const Batch& same = expected->next();
    ASSERT_EQ(labels_of(batch), labels_of(same)) << "batch " << i;
    ASSERT_EQ(pixels_of(batch), pixels_of(same)) << "batch " << i;
    ASSERT_EQ(batch.loss_divisor, same.loss_divisor);
  }
  EXPECT_EQ(source.upcoming(), nullptr);
}

TEST(LeasedBatchSource, AugmentsASampleByItsEpoch) {
  const CountingDataset dataset(100, {6, 6, 3});
  FakeLeaseSource lease_source({{0, 0, 4}, {1, 0, 4}, {0, 0, 4}});
  LeasedBatchSource source(
      dataset, {.input = {.batch_size = 4, .shuffle = false, .augment = Augment::kCropFlip}},
      lease_source.hooks());
  const auto first = pixels_of(source.next());
  EXPECT_NE(pixels_of(source.next()), first);
  EXPECT_EQ(pixels_of(source.next()), first);
}

TEST(LeasedBatchSource, DividesTheLossByAMultipleOfTheBatch) {
  const CountingDataset dataset(100);
  FakeLeaseSource lease_source({{0, 0, 8}, {0, 8, 13}});
  LeasedBatchSource source(dataset, {.input = {.batch_size = 8}, .loss_divisor_factor = 3},
                           lease_source.hooks());
  EXPECT_EQ(source.next().loss_divisor, 24);
  EXPECT_EQ(source.next().loss_divisor, 15);
}

TEST(LeasedBatchSource, TakesNoMoreLeasesThanPrefetchAllows) {
  const CountingDataset dataset(1000);
  for (const int prefetch : {0, 1, 3}) {
    FakeLeaseSource lease_source(whole_epochs(1, 1000, 10));
    {
      LeasedBatchSource source(dataset,
                               {.input = {.batch_size = 10, .threads = 3, .prefetch = prefetch}},
                               lease_source.hooks());
      for (std::size_t taken = 1; taken <= 5; ++taken) {
        source.next();
        ASSERT_TRUE(lease_source.wait_until_asked(taken + static_cast<std::size_t>(prefetch)));
      }
    }
    EXPECT_EQ(lease_source.given(), 5U + static_cast<std::size_t>(prefetch));
  }
}

TEST(LeasedBatchSource, LeavesABatchUnchangedUntilTheSecondNextCall) {
  const CountingDataset dataset(1000);
  FakeLeaseSource lease_source(whole_epochs(1, 1000, 4));
  LeasedBatchSource source(
      dataset, {.input = {.batch_size = 4, .shuffle = false, .threads = 2, .prefetch = 1}},
      lease_source.hooks());
  for (std::int32_t i = 0; i < 50; ++i) {
    const Batch& held = source.next();
    const Batch& newer = source.next();
    ASSERT_NE(source.upcoming(), nullptr);
    // In each round the test takes two batches. The readers read these, the upcoming batch, and one
    // ahead of it: then they have nothing left to do.
    ASSERT_TRUE(dataset.wait_for_reads((2 * i + 4) * 4));
    ASSERT_EQ(labels_of(held).front(), 8 * i);
    ASSERT_EQ(labels_of(newer).front(), 8 * i + 4);
  }
}

TEST(LeasedBatchSource, HasThePositionOfTheUpcomingBatch) {
  const CountingDataset dataset(100);
  FakeLeaseSource lease_source({{2, 10, 14}, {1, 50, 52}});
  LeasedBatchSource source(dataset, {.input = {.batch_size = 4}}, lease_source.hooks());
  source.upcoming();
  EXPECT_EQ(source.position(), (ps::DataPosition{2, 10}));
  source.next();
  EXPECT_EQ(source.position(), (ps::DataPosition{2, 14}));
  source.upcoming();
  EXPECT_EQ(source.position(), (ps::DataPosition{1, 50}));
  EXPECT_EQ(source.batches_per_epoch(), 25);
}

TEST(LeasedBatchSource, WakesALeaseThatBlocksWhenItIsDestroyed) {
  const CountingDataset dataset(100);
  for (const int threads : {1, 4}) {
    FakeLeaseSource lease_source({{0, 0, 4}}, FakeLeaseSource::End::kWait);
    auto source = std::make_unique<LeasedBatchSource>(
        dataset, LeasedInputOptions{.input = {.batch_size = 4, .threads = threads}},
        lease_source.hooks());
    source->next();
    ASSERT_TRUE(lease_source.wait_until_asked(2));
    const auto destroyed = std::async(std::launch::async, [&] { source.reset(); });
    EXPECT_EQ(destroyed.wait_for(kTimeout), std::future_status::ready);
    EXPECT_EQ(lease_source.stopped(), 1);
  }
}

TEST(LeasedBatchSource, CanBeDestroyedAtAnyMoment) {
  const CountingDataset dataset(100);
  for (int taken = 0; taken < 10; ++taken) {
    for (const int threads : {1, 4}) {
      FakeLeaseSource lease_source(whole_epochs(1, 100, 10), FakeLeaseSource::End::kWait);
      LeasedBatchSource source(dataset, {.input = {.batch_size = 10, .threads = threads}},
                               lease_source.hooks());
      for (int i = 0; i < taken; ++i) source.next();
    }
  }
}

TEST(LeasedBatchSource, DeliversAnErrorOfTheJobAfterTheEarlierBatches) {
  const CountingDataset dataset(100);
  FakeLeaseSource lease_source({{0, 0, 4}, {0, 4, 8}}, FakeLeaseSource::End::kError);
  LeasedBatchSource source(dataset, {.input = {.batch_size = 4, .threads = 2, .prefetch = 4}},
                           lease_source.hooks());
  source.next();
  source.next();
  EXPECT_THROW(source.upcoming(), PeerError);
  EXPECT_THROW(source.next(), PeerError);
  EXPECT_THROW(source.upcoming(), PeerError);
  EXPECT_EQ(lease_source.ended(), 1);
}

TEST(LeasedBatchSource, DeliversAnErrorOfTheDatasetAtTheBatchItBelongsTo) {
  const BrokenDataset dataset(100, 5);
  FakeLeaseSource lease_source({{0, 0, 4}, {0, 4, 8}, {0, 8, 12}});
  LeasedBatchSource source(dataset, {.input = {.batch_size = 4, .shuffle = false, .prefetch = 4}},
                           lease_source.hooks());
  source.next();
  EXPECT_NE(source.upcoming(), nullptr);
  EXPECT_THROW(source.next(), FileError);
  EXPECT_THROW(source.next(), FileError);
}

TEST(LeasedBatchSource, RefusesALeaseOfOtherData) {
  const CountingDataset dataset(100);
  for (const ps::SampleRange& lease :
       Ranges{{0, 98, 101}, {0, -1, 2}, {-1, 0, 2}, {0, 5, 5}, {0, 0, 5}}) {
    FakeLeaseSource lease_source({lease});
    LeasedBatchSource source(dataset, {.input = {.batch_size = 4}}, lease_source.hooks());
    EXPECT_THROW(source.upcoming(), UsageError) << lease.begin << " to " << lease.end;
  }
}

}  // namespace
}  // namespace syncopate
