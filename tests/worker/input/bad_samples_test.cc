// Samples that cannot be read: what training and evaluations do about them, within the limit.
#include "worker/input/dataset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/counting_dataset.h"
#include "tests/worker/input/packed_files.h"
#include "worker/input/batches/batch_source.h"
#include "worker/train/evaluate.h"

namespace syncopate {
namespace {

// Some samples cannot be read, of which `limit` may be skipped.
class DamagedDataset final : public CountingDataset {
 public:
  DamagedDataset(std::int64_t size, std::set<std::int64_t> damaged, std::int64_t limit)
      : CountingDataset(size), damaged_(std::move(damaged)), bad_(limit) {}

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    if (damaged_.contains(index)) throw FileError("sample " + std::to_string(index));
    CountingDataset::read(index, draw, sample);
  }
  BadSamples* bad_samples() const noexcept override { return &bad_; }

 private:
  std::set<std::int64_t> damaged_;
  mutable BadSamples bad_;
};

InputOptions in_order(std::int64_t batch_size, bool leaves_out_bad) {
  return {.batch_size = batch_size,
          .shuffle = false,
          .drop_remainder = false,
          .leaves_out_bad = leaves_out_bad};
}

TEST(BadSamples, AreReplacedByTheNextGoodOneInTraining) {
  const DamagedDataset dataset(5, {1, 2, 4}, 3);
  const auto source = make_batch_source(dataset, in_order(5, false));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Batch& batch = source->next();
    EXPECT_EQ(labels_of(batch), (Labels{0, 3, 3, 3, 0}));
    EXPECT_EQ(batch.num_bad, 3);
    EXPECT_EQ(batch.loss_divisor, 5);
  }
}

TEST(BadSamples, AreReplacedByOnesOfTheSameSplit) {
  // All samples behind a held out one are bad, so that the next good one is often of the other
  // part.
  DataSplits data{.name = "damaged",
                  .train = std::make_unique<DamagedDataset>(
                      40, std::set<std::int64_t>{1, 2, 5, 9, 14, 15, 22, 27, 31, 38}, 10),
                  .test = std::make_unique<CountingDataset>(1)};
  split_validation(data, "val=0.5", 1);
  std::set<std::int32_t> own;
  for (std::int64_t i = 0; i < data.train->size(); ++i) own.insert(data.train->label(i));
  const auto source = make_batch_source(*data.train, in_order(data.train->size(), false));
  const Batch& batch = source->next();
  EXPECT_GT(batch.num_bad, 0);
  for (const std::int32_t label : labels_of(batch)) EXPECT_TRUE(own.contains(label)) << label;
}

TEST(BadSamples, AreLeftOutOfEvaluations) {
  const DamagedDataset dataset(6, {1, 2, 4}, 3);
  const auto source = make_batch_source(dataset, in_order(3, true));
  const Batch& first = source->next();
  EXPECT_EQ(labels_of(first), (Labels{0}));
  EXPECT_EQ(first.num_samples, 1);
  EXPECT_EQ(first.num_bad, 2);
  EXPECT_EQ(first.loss_divisor, 1);
  const Batch& second = source->next();
  EXPECT_EQ(labels_of(second), (Labels{3, 5}));
  EXPECT_EQ(second.num_bad, 1);
  const DatasetRange range(dataset, 4, 6);
  EXPECT_EQ(make_batch_source(range, in_order(2, true))->next().num_bad, 1);
}

TEST(BadSamples, AreTooManyWhenMoreThanTheLimitFollowEachOther) {
  const DamagedDataset dataset(5, {1, 2, 3}, 2);
  const auto source = make_batch_source(dataset, in_order(5, false));
  EXPECT_EQ(message_of<BadSampleError>([&] { source->next(); }),
            "3 bad samples in a row, more than --skip-bad-records 2; one of them: sample 1");
}

TEST(BadSamples, AreNamedWhenNoneMayBeSkipped) {
  const BrokenDataset dataset(3, 1);
  EXPECT_EQ(
      message_of<BadSampleError>([&] { make_batch_source(dataset, in_order(3, true))->next(); }),
      "sample 1 is broken");
}

Scores sums_of(std::int64_t samples, std::int64_t bad, double loss = 1.0) {
  return {.loss = loss, .num_samples = samples, .num_bad = bad, .metrics = {1.0}};
}

TEST(AnEvaluation, IsTheMeanOfItsGoodSamplesAndNamesTheFirstBadOne) {
  const DamagedDataset dataset(6, {3, 5}, 2);
  const Evaluation result =
      add_up(std::vector{sums_of(3, 0), sums_of(1, 2)}, LossKind::kSoftmaxCrossEntropy, dataset);
  EXPECT_EQ(result.samples, 4);
  EXPECT_EQ(result.loss, 0.5);
  EXPECT_EQ(result.metric.value, 0.5);
  EXPECT_EQ(describe_bad("test", result), "left out        2 bad test samples, first: sample 3\n");
  EXPECT_EQ(describe_bad("test", {}), "");
}

TEST(AnEvaluation, FailsWithMoreBadSamplesThanTheLimitOrOnlyBadOnes) {
  const DamagedDataset two(6, {3, 5}, 1);
  EXPECT_THROW(add_up(std::vector{sums_of(4, 2)}, LossKind::kSoftmaxCrossEntropy, two),
               BadSampleError);
  const DamagedDataset all(2, {0, 1}, 9);
  EXPECT_THROW(add_up(std::vector{sums_of(0, 2)}, LossKind::kSoftmaxCrossEntropy, all),
               BadSampleError);
}

TEST(AnEvaluation, WarnsOfALossThatIsNotFinite) {
  const CountingDataset dataset(4);
  testing::internal::CaptureStderr();
  add_up(std::vector{sums_of(4, 0, std::nan(""))}, LossKind::kSoftmaxCrossEntropy, dataset);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "the loss of an evaluation is nan"));
}

}  // namespace
}  // namespace syncopate
