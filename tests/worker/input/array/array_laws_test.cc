// The laws of the pipeline on samples that several threads read from files: every sample once an
// epoch over all ranks, in an order that depends on seed and epoch alone, from every position.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr std::int64_t kBatch = 4;

// A folder of arrays: training sample i is {i, -i} of class i % 3.
class NumberedArrays {
 public:
  explicit NumberedArrays(std::int64_t size) {
    put("train", size);
    put("test", 1);
    data_ = open_dataset("npy:" + folder_.path().string(), {});
  }
  const Dataset& train() const { return *data_.train; }

 private:
  void put(const std::string& split, std::int64_t size) {
    std::vector<float> x;
    std::vector<std::int16_t> y;
    for (std::int64_t i = 0; i < size; ++i) {
      x.insert(x.end(), {static_cast<float>(i), static_cast<float>(-i)});
      y.push_back(static_cast<std::int16_t>(i % 3));
    }
    write_file(folder_.path() / ("x_" + split + ".npy"),
               npy_bytes("<f4", "(" + std::to_string(size) + ", 2)", bytes_of(x)));
    write_file(folder_.path() / ("y_" + split + ".npy"),
               npy_bytes("<i2", "(" + std::to_string(size) + ",)", bytes_of(y)));
  }

  TemporaryFolder folder_;
  DataSplits data_;
};

// Returns the numbers of the samples of the next batches; expects that values and class fit.
std::vector<int> take(BatchSource& source, std::int64_t batches) {
  std::vector<int> numbers;
  for (std::int64_t b = 0; b < batches; ++b) {
    const Batch& batch = source.next();
    for (std::int64_t i = 0; i < batch.num_samples; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float number = batch.inputs[0].f32()[2 * at];
      EXPECT_EQ(batch.inputs[0].f32()[2 * at + 1], -number);
      EXPECT_EQ(batch.target.i32()[at], static_cast<int>(number) % 3);
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

TEST(BatchesOfArrays, HaveEverySampleOnceAnEpochOverAllRanks) {
  for (const std::int64_t size :
       {std::int64_t{1}, kBatch - 1, kBatch, kBatch + 1, 7 * kBatch + 3}) {
    const NumberedArrays arrays(size);
    for (const int ranks : {1, 2, 3, 7}) {
      for (const int threads : {1, 2, 8}) {
        std::map<int, int> seen;
        for (int rank = 0; rank < ranks; ++rank) {
          const auto source = make_batch_source(arrays.train(), {.batch_size = kBatch * ranks,
                                                                 .drop_remainder = false,
                                                                 .threads = threads,
                                                                 .shard = {rank, 1, ranks}});
          for (const int number : take(*source, source->batches_per_epoch())) ++seen[number];
        }
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), size);
        ASSERT_TRUE(std::ranges::all_of(seen, [](const auto& one) { return one.second == 1; }))
            << size << " samples, " << ranks << " ranks, " << threads << " threads";
      }
    }
  }
}

TEST(BatchesOfArrays, AreTheSameForAnyThreadsAndFromEveryPosition) {
  const NumberedArrays arrays(3 * kBatch + 1);
  constexpr std::int64_t kBatches = 8;  // more than two epochs
  for (const int ranks : {1, 2, 3}) {
    InputOptions options{.batch_size = kBatch * ranks, .threads = 1, .shard = {0, 1, ranks}};
    const std::vector<int> expected = take(*make_batch_source(arrays.train(), options), kBatches);
    for (const int threads : {2, 8}) {
      options.threads = threads;
      EXPECT_EQ(take(*make_batch_source(arrays.train(), options), kBatches), expected);
    }
    for (std::int64_t taken = 0; taken <= kBatches; ++taken) {
      const auto first = make_batch_source(arrays.train(), options);
      std::vector<int> numbers = take(*first, taken);
      const auto rest = make_batch_source(arrays.train(), options, first->position());
      const std::vector<int> later = take(*rest, kBatches - taken);
      numbers.insert(numbers.end(), later.begin(), later.end());
      EXPECT_EQ(numbers, expected) << "resumed after " << taken << " batches";
    }
  }
}

TEST(BatchesOfArrays, AreNotMadeOfNoSamples) {
  EXPECT_TRUE(
      contains(message_of<FileError>([] { NumberedArrays arrays(0); }), "holds no samples"));
}

}  // namespace
}  // namespace syncopate
