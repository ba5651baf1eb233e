#include "worker/input/batches/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/counting_dataset.h"

namespace syncopate {
namespace {

Labels take(BatchSource& source, std::int64_t batches) {
  Labels all;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Labels labels = labels_of(source.next());
    all.insert(all.end(), labels.begin(), labels.end());
  }
  return all;
}

TEST(BatchSource, ReturnsEverySampleOncePerEpochOverAllShards) {
  constexpr std::int64_t kBatch = 5;
  for (const std::int64_t size :
       {std::int64_t{1}, kBatch - 1, kBatch, kBatch + 1, std::int64_t{38}}) {
    for (const int shards : {1, 2, 3, 7}) {
      for (const int threads : {1, 2, 8}) {
        const CountingDataset dataset(size);
        std::map<std::int32_t, int> seen;
        for (int shard = 0; shard < shards; ++shard) {
          const auto source = make_batch_source(dataset, {.batch_size = kBatch * shards,
                                                          .drop_remainder = false,
                                                          .threads = threads,
                                                          .shard = {shard, 1, shards}});
          for (const std::int32_t label : take(*source, source->batches_per_epoch())) ++seen[label];
          EXPECT_EQ(source->position(), (ps::DataPosition{1, 0}));
        }
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), size);
        for (const auto& [label, times] : seen) {
          ASSERT_EQ(times, 1) << "sample " << label << " of " << size << ", " << shards
                              << " shards, " << threads << " threads";
        }
      }
    }
  }
}

// Returns the key of each sample, by label, in the next `batches` batches.
std::map<std::int32_t, std::uint64_t> take_keys(BatchSource& source, std::int64_t batches) {
  std::map<std::int32_t, std::uint64_t> all;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Batch& batch = source.next();
    const std::vector<std::uint64_t> keys = keys_of(batch);
    const Labels labels = labels_of(batch);
    for (std::size_t row = 0; row < keys.size(); ++row) all[labels[row]] = keys[row];
  }
  return all;
}

TEST(BatchSource, GivesASampleAKeyThatDependsOnSeedAndEpochAlone) {
  const CountingDataset dataset(12);
  const auto whole = make_batch_source(dataset, {.batch_size = 4, .seed = 7});
  const auto first_epoch = take_keys(*whole, 3);
  const auto second_epoch = take_keys(*whole, 3);
  std::map<std::int32_t, std::uint64_t> in_shards;
  for (const int shard : {0, 1}) {
    const auto source = make_batch_source(
        dataset,
        {.batch_size = 6, .seed = 7, .shuffle = false, .threads = 2, .shard = {shard, 1, 2}});
    in_shards.merge(take_keys(*source, 2));
  }
  EXPECT_EQ(in_shards, first_epoch);
  const auto of_other_seed =
      take_keys(*make_batch_source(dataset, {.batch_size = 12, .seed = 8}), 1);
  ASSERT_EQ(first_epoch.size(), 12U);
  for (const auto& [label, key] : first_epoch) {
    EXPECT_EQ(key, make_key(7, 0, label));
    EXPECT_EQ(second_epoch.at(label), make_key(7, 1, label));
    EXPECT_NE(second_epoch.at(label), key);
    EXPECT_NE(of_other_seed.at(label), key);
  }
}

// Sample i has the inputs "dense" f32 [2] = {i, -i} and "id" i32 [] = 10 i, and an f32 target i
// / 2.
class TwoInputs final : public Dataset {
 public:
  std::int64_t size() const noexcept override { return 5; }
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& /*draw*/, const SampleView& sample) const override {
    const auto number = static_cast<float>(index);
    const std::array dense = {number, -number};
    const auto id = static_cast<std::int32_t>(10 * index);
    const float target = number / 2.0F;
    std::memcpy(sample.inputs[0].data(), dense.data(), sizeof dense);
    std::memcpy(sample.inputs[1].data(), &id, sizeof id);
    std::memcpy(sample.target.data(), &target, sizeof target);
  }
  std::int32_t label(std::int64_t /*index*/) const override { return 0; }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return static_cast<std::uint64_t>(index);
  }

 private:
  SampleSpec spec_{.inputs = {{"dense", DType::kF32, {2}}, {"id", DType::kI32, {}}},
                   .target = {"y", DType::kF32, {}}};
};

TEST(BatchSource, FillsEveryInputAndATargetThatIsNoClass) {
  const TwoInputs dataset;
  const auto source = make_batch_source(
      dataset, {.batch_size = 3, .shuffle = false, .drop_remainder = false, .threads = 1});
  for (const std::vector<float>& numbers : {std::vector<float>{0, 1, 2}, {3, 4}}) {
    const Batch& batch = source->next();
    ASSERT_EQ(batch.num_samples, static_cast<std::int64_t>(numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(batch.inputs[0].f32()[2 * i], numbers[i]);
      EXPECT_EQ(batch.inputs[0].f32()[2 * i + 1], -numbers[i]);
      EXPECT_EQ(batch.inputs[1].i32()[i], static_cast<std::int32_t>(10 * numbers[i]));
      EXPECT_EQ(batch.target.f32()[i], numbers[i] / 2);
    }
  }
}

// Returns the options of a task that uses some tensors of its samples.
InputOptions options_of_part(bool reads_inputs, bool reads_targets) {
  return {.batch_size = 4, .shard = {.reads_inputs = reads_inputs, .reads_targets = reads_targets}};
}

TEST(BatchSource, ReadsClassesAloneForATaskThatUsesNoInputs) {
  const CountingDataset dataset(12);
  const auto whole = make_batch_source(dataset, {.batch_size = 4});
  const auto source = make_batch_source(dataset, options_of_part(false, true));
  EXPECT_EQ(take(*source, 3), take(*whole, 3));
  EXPECT_EQ(source->position(), whole->position());
  const std::int64_t reads = dataset.reads();
  (void)take(*source, 3);
  EXPECT_LE(dataset.reads() - reads, 2 * 4) << "batches ahead of the other source";
}

TEST(BatchSource, ReadsNothingForATaskBetweenInputsAndTargets) {
  const CountingDataset dataset(12);
  const auto source = make_batch_source(dataset, options_of_part(false, false));
  const CountingDataset same(12);
  const auto whole = make_batch_source(same, {.batch_size = 4});
  const Batch& batch = source->next();
  EXPECT_EQ(keys_of(batch), keys_of(whole->next()));
  EXPECT_EQ(batch.num_samples, 4);
  EXPECT_EQ(dataset.reads(), 0);
}

TEST(BatchSource, RefusesAnEmptyDataset) {
  EXPECT_THROW(make_batch_source(CountingDataset(0), {.batch_size = 1, .drop_remainder = false}),
               UsageError);
}

TEST(BatchSource, HasTheSameOrderForAnyNumberOfThreads) {
  const CountingDataset dataset(100, {8, 8, 3});
  const auto sequence = [&](int threads, int prefetch) {
    const auto source = make_batch_source(
        dataset,
        {.batch_size = 7, .augment = Augment::kCropFlip, .threads = threads, .prefetch = prefetch});
    std::vector<std::vector<std::uint8_t>> batches;
    batches.reserve(40);
    for (int i = 0; i < 40; ++i) batches.push_back(pixels_of(source->next()));
    return batches;
  };
  const auto expected = sequence(1, 2);
  EXPECT_EQ(sequence(2, 2), expected);
  EXPECT_EQ(sequence(8, 6), expected);
  EXPECT_EQ(sequence(3, 0), expected);
}

// A data set of which each sample takes `delay` to read.
class SlowDataset final : public CountingDataset {
 public:
  SlowDataset(std::int64_t size, std::chrono::microseconds delay)
      : CountingDataset(size, {8, 8, 3}), delay_(delay) {}

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    std::this_thread::sleep_for(delay_);
    CountingDataset::read(index, draw, sample);
  }

 private:
  std::chrono::microseconds delay_;
};

TEST(BatchSource, HasTheSameOrderWhileTheNumberOfReadersChanges) {
  const InputOptions fixed{.batch_size = 4, .augment = Augment::kCropFlip};
  InputOptions tuned = fixed;
  tuned.autotune = {.threads = true, .prefetch = true, .cpus = 8};
  const CountingDataset fast(100, {8, 8, 3});
  const SlowDataset slow(100, std::chrono::microseconds(250));
  const auto expected = make_batch_source(fast, fixed);
  const auto source = make_batch_source(slow, tuned);
  EXPECT_EQ(source->counters().readers, 1);
  int most_readers = 1;
  // The consumer takes batches at once, then needs longer for each than one reader does.
  for (int i = 0; i < 200; ++i) {
    if (i >= 100) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(pixels_of(source->next()), pixels_of(expected->next())) << i;
    most_readers = std::max(most_readers, source->counters().readers);
  }
  EXPECT_GT(most_readers, 1);
  EXPECT_LE(most_readers, 8);
  EXPECT_LT(source->counters().readers, most_readers);
}

TEST(BatchSource, CountsTheReadersThatAFixedPrefetchAllows) {
  const CountingDataset dataset(100);
  const auto most_readers = [&](int prefetch, bool is_tuned) {
    const InputOptions options{.batch_size = 4,
                               .prefetch = prefetch,
                               .autotune = {.threads = true, .prefetch = is_tuned, .cpus = 8}};
    return make_batch_source(dataset, options)->counters().most_readers;
  };
  EXPECT_EQ(most_readers(1, false), 1);
  EXPECT_EQ(most_readers(3, false), 3);
  EXPECT_EQ(most_readers(3, true), 0);
}

TEST(BatchSource, HasNoMoreBatchesAheadThanFitIntoItsMemory) {
  const SlowDataset dataset(1000, std::chrono::microseconds(100));
  constexpr std::int64_t kBatchBytes = 4 * (8 * 8 * 3 + 4 + 8);  // pixels, label and key
  const auto source = make_batch_source(
      dataset,
      {.batch_size = 4,
       .autotune = {.threads = true, .prefetch = true, .cpus = 8, .most_bytes = 5 * kBatchBytes}});
  for (int i = 0; i < 50; ++i) source->next();
  // Three are ahead and two are held, of which one is filled again only at the next call.
  EXPECT_LE(dataset.reads(), (50 + 3 + 1) * 4);
  EXPECT_LE(source->counters().readers, 2);
}

TEST(BatchSource, HasAnotherOrderForEachEpochAndSeed) {
  const CountingDataset dataset(50);
  const auto source = make_batch_source(dataset, {.batch_size = 50});
  const auto other_seed = make_batch_source(dataset, {.batch_size = 50, .seed = 2});
  const Labels first = take(*source, 1);
  EXPECT_NE(take(*source, 1), first);
  EXPECT_NE(take(*other_seed, 1), first);
}

TEST(BatchSource, KeepsTheDatasetsOrderWithoutShuffling) {
  const CountingDataset dataset(5);
  const auto source =
      make_batch_source(dataset, {.batch_size = 2, .shuffle = false, .drop_remainder = false});
  EXPECT_EQ(take(*source, 4), (Labels{0, 1, 2, 3, 4, 0, 1}));
}

TEST(BatchSource, PairsEachLabelWithItsPixels) {
  const CountingDataset dataset(200);
  const auto source = make_batch_source(dataset, {.batch_size = 16, .threads = 2});
  for (int i = 0; i < 30; ++i) {
    const Batch& batch = source->next();
    ASSERT_EQ(batch.inputs[0].shape(), (Shape{16, 2, 3, 1}));
    for (std::size_t row = 0; row < 16; ++row) {
      ASSERT_EQ(batch.inputs[0].u8()[row * 6 + 1],
                static_cast<std::uint8_t>(batch.target.i32()[row] + 1));
    }
  }
}

TEST(BatchSource, DividesTheLossByTheGlobalCountShortBatchesIncluded) {
  const CountingDataset dataset(9);
  const auto last_shard =
      make_batch_source(dataset, {.batch_size = 8, .drop_remainder = false, .shard = {3, 1, 4}});
  const Batch& whole = last_shard->next();
  EXPECT_EQ(whole.num_samples, 2);
  EXPECT_EQ(whole.loss_divisor, 8);
  const Batch& rest = last_shard->next();
  EXPECT_EQ(rest.num_samples, 0);
  EXPECT_EQ(rest.inputs[0].shape(), (Shape{0, 2, 3, 1}));
  EXPECT_EQ(rest.loss_divisor, 1);
  EXPECT_EQ(last_shard->next().num_samples, 2);
}

TEST(BatchSource, LeavesABatchUnchangedUntilTheSecondNextCall) {
  const CountingDataset dataset(1000);
  const InputOptions options{.batch_size = 4, .shuffle = false, .threads = 2, .prefetch = 1};
  const auto source = make_batch_source(dataset, options);
  for (std::int32_t i = 0; i < 50; ++i) {
    const Batch& held = source->next();
    const Batch& newer = source->next();
    const auto ready_ahead = static_cast<std::int64_t>(options.prefetch) + 2;
    // After these reads the reader threads have nothing left to do: if they had overwritten the
    // batch `held`, the test would see it.
    ASSERT_TRUE(dataset.wait_for_reads((2 * i + ready_ahead) * 4));
    ASSERT_EQ(labels_of(held).front(), 8 * i);
    ASSERT_EQ(labels_of(newer).front(), 8 * i + 4);
  }
}

// The test resumes shuffled and augmented batches, with and without remainder, over two epoch
// borders.
TEST(BatchSource, ContinuesBitForBitFromEveryPosition) {
  const CountingDataset dataset(11, {6, 6, 1});
  for (const bool drop_remainder : {true, false}) {
    for (const int shards : {1, 2}) {
      const InputOptions options{.batch_size = 2 * shards,
                                 .drop_remainder = drop_remainder,
                                 .augment = Augment::kCropFlip,
                                 .threads = 2,
                                 .shard = {shards - 1, 1, shards}};
      std::vector<ps::DataPosition> positions;
      std::vector<std::vector<std::uint8_t>> batches;
      const auto uninterrupted = make_batch_source(dataset, options);
      for (int i = 0; i < 16; ++i) {
        positions.push_back(uninterrupted->position());
        batches.push_back(pixels_of(uninterrupted->next()));
      }
      for (std::size_t from = 0; from < positions.size(); ++from) {
        const auto resumed = make_batch_source(dataset, options, positions[from]);
        for (std::size_t i = from; i < batches.size(); ++i) {
          ASSERT_EQ(resumed->position(), positions[i]);
          ASSERT_EQ(pixels_of(resumed->next()), batches[i]) << "batch " << i << " from " << from;
        }
      }
    }
  }
}

TEST(BatchSource, DeliversAnErrorAtTheBatchItBelongsTo) {
  const BrokenDataset dataset(40, 17);
  for (const int threads : {1, 2, 8}) {
    const auto source = make_batch_source(
        dataset, {.batch_size = 5, .shuffle = false, .threads = threads, .prefetch = 6});
    EXPECT_EQ(take(*source, 3).back(), 14);
    EXPECT_THROW(source->next(), FileError);
    EXPECT_THROW(source->next(), FileError);
    EXPECT_EQ(source->position(), (ps::DataPosition{0, 15}));
    EXPECT_EQ(source->counters().batches, 3);
  }
}

TEST(BatchSource, ReadsAtMostPrefetchBatchesAhead) {
  const CountingDataset dataset(1000);
  {
    const auto source = make_batch_source(dataset, {.batch_size = 10, .threads = 3, .prefetch = 3});
    // The source reads five batches: three ready ahead and the two that the consumer will hold. The
    // ring is full when the source is destroyed.
    ASSERT_TRUE(dataset.wait_for_reads(50));
  }
  EXPECT_EQ(dataset.reads(), 50);
}

TEST(BatchSource, CanBeDestroyedAtAnyMoment) {
  const CountingDataset dataset(100);
  for (int taken = 0; taken < 20; ++taken) {
    for (const int threads : {1, 4}) {
      const auto source = make_batch_source(dataset, {.batch_size = 9, .threads = threads});
      take(*source, taken);
    }
  }
  const BrokenDataset broken(100, 3);
  make_batch_source(broken, {.batch_size = 100});
}

// Data of a user's program, whose targets were not checked before. One sample of three has the
// target `wrong`.
class UncheckedDataset final : public CountingDataset {
 public:
  UncheckedDataset(SampleSpec spec, std::int32_t wrong)
      : CountingDataset(3), wrong_(wrong), spec_(std::move(spec)) {}
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& /*draw*/, const SampleView& sample) const override {
    std::ranges::fill(sample.target, std::byte{0});
    if (index == 1) std::memcpy(sample.target.data(), &wrong_, sizeof wrong_);
  }

 private:
  std::int32_t wrong_;
  SampleSpec spec_;
};

std::string error_of_targets(const SampleSpec& spec, std::int32_t wrong) {
  const UncheckedDataset dataset(spec, wrong);
  return message_if_thrown<FileError>([&] {
    make_batch_source(dataset, {.batch_size = 3, .shuffle = false, .threads = 1})->next();
  });
}

// A user's data set that throws what it likes.
class ThrowingDataset final : public CountingDataset {
 public:
  explicit ThrowingDataset(std::function<void()> fail)
      : CountingDataset(3), fail_(std::move(fail)) {}
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    if (index == 1) fail_();
    CountingDataset::read(index, draw, sample);
  }

 private:
  std::function<void()> fail_;
};

std::string error_of_read(const std::function<void()>& fail) {
  const ThrowingDataset dataset(fail);
  return message_of<FileError>([&] {
    make_batch_source(dataset, {.batch_size = 3, .shuffle = false, .threads = 1})->next();
  });
}

TEST(BatchSource, NamesTheSampleWhoseDataSetThrowsAnything) {
  EXPECT_EQ(error_of_read([] { throw std::runtime_error("sensor 7 is unplugged"); }),
            "sample 1 of 3 cannot be read: sensor 7 is unplugged");
  EXPECT_EQ(error_of_read([] { throw 42; }),
            "sample 1 of 3 cannot be read: its data set threw an exception of an unknown type");
}

TEST(BatchSource, RefusesTargetsThatAreNoClasses) {
  const SampleSpec classified = classified_samples({2}, 2);
  EXPECT_EQ(error_of_targets(classified, 1), "");
  EXPECT_EQ(error_of_targets(classified, 2), "sample 1 of 3: its class is 2; expected 0 to 1");
  EXPECT_EQ(error_of_targets(classified, -1), "sample 1 of 3: its class is -1; expected 0 to 1");
  const SampleSpec mapped = mapped_samples({2, 2, 1}, 2);
  EXPECT_EQ(error_of_targets(mapped, 255), "");
  EXPECT_EQ(
      error_of_targets(mapped, 2),
      "sample 1 of 3: its label map has the class 2; expected 0 to 1, or 255 for a pixel that "
      "does not count");
}

}  // namespace
}  // namespace syncopate
