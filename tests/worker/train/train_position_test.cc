// Tests the progress of a run and its remaining steps, which follow from its position in the data.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "models/zoo/zoo.h"
#include "tests/worker/input/counting_dataset.h"
#include "worker/train/train_loop.h"

namespace syncopate {
namespace {

TEST(EpochsAt, CountsTheTrainedPartOfAnEpoch) {
  EXPECT_EQ(epochs_at({2, 4}, 10, 2), 2.4);
  EXPECT_EQ(epochs_at({2, 4}, 11, 2), 2.4) << "the eleventh is dropped";
  EXPECT_EQ(epochs_at({2, 8}, 10, 4), 3.0) << "no batch is left";
}

TEST(EpochsAt, LeavesOutSkippedSamples) {
  EXPECT_EQ(epochs_at({2, 4, {{2, 0, 2}}}, 10, 2), 2.2);
  EXPECT_EQ(epochs_at({2, 4, {{1, 0, 4}, {2, 0, 2}}}, 10, 2), 1.8);
  EXPECT_EQ(epochs_at({2, 4, {{1, 0, 3}}}, 10, 2), 2.2) << "one of the three makes no batch";
}

std::int64_t steps_left(const ps::DataPosition& position, std::int64_t total_epochs) {
  return remaining_steps({.total_epochs = total_epochs},
                         {.at = {.step = 100, .position = position}}, 11, 2);
}

TEST(RemainingSteps, AreThoseOfTheEpochAndLaterEpochs) {
  EXPECT_EQ(steps_left({0, 0}, 3), 15);
  EXPECT_EQ(steps_left({1, 4}, 3), 8);
  EXPECT_EQ(steps_left({3, 0}, 3), 0);
  EXPECT_LE(steps_left({4, 2}, 3), 0);
}

TEST(RemainingSteps, IncludeSkippedSamples) {
  EXPECT_EQ(steps_left({1, 4, {{0, 2, 5}, {1, 0, 3}}}, 3), 11) << "1, 3 + 2, 5; joined: 10 of 11";
  EXPECT_EQ(steps_left({3, 0, {{2, 0, 4}}}, 3), 2) << "all epochs were handed out";
  EXPECT_EQ(steps_left({4, 2, {{2, 0, 4}, {3, 0, 4}}}, 3), 2) << "not those past the end";
}

TEST(RemainingSteps, FollowFromTheStepsThatTheUserGave) {
  EXPECT_EQ(remaining_steps({.total_steps = 120},
                            {.at = {.step = 100, .position = {1, 4, {{0, 0, 4}}}}}, 11, 2),
            20);
}

// Records which samples of which epoch were trained.
class NotedBatches final : public BatchSource {
 public:
  explicit NotedBatches(std::unique_ptr<BatchSource> source) : source_(std::move(source)) {}
  const Batch& next() override {
    const ps::DataPosition position = source_->position();
    const std::int64_t epoch =
        position.untrained.empty() ? position.epoch : position.untrained.front().epoch;
    const Batch& batch = source_->next();
    for (const std::int32_t label : batch.target.i32()) ++times_[{epoch, label}];
    return batch;
  }
  ps::DataPosition position() const override { return source_->position(); }
  std::int64_t batches_per_epoch() const override { return source_->batches_per_epoch(); }
  InputCounters counters() const override { return source_->counters(); }

  const std::map<std::pair<std::int64_t, std::int32_t>, int>& times() const { return times_; }

 private:
  std::unique_ptr<BatchSource> source_;
  std::map<std::pair<std::int64_t, std::int32_t>, int> times_;
};

TEST(ARunResumedWithGaps, EndsWhenEverySampleIsTrainedOncePerEpoch) {
  constexpr std::int64_t kSize = 24;
  constexpr std::int64_t kBatch = 4;
  const CountingDataset dataset(kSize);
  const Graph graph = build_network("mlp", {.sample_shape = dataset.spec().inputs[0].shape,
                                            .classes = static_cast<int>(kSize),
                                            .input = {DType::kU8, {0.0F}, {255.0F}}});
  const auto strategy = make_strategy({.batch_size_per_replica = kBatch}, graph);
  // The samples left to train are 4 of epoch 0, 12 of epoch 1, 8 of them before the position, and
  // 24 of epoch 2.
  const Progress start{
      .at = {.step = 8, .samples = 32, .position = {1, 20, {{0, 6, 10}, {1, 2, 5}, {1, 11, 16}}}}};
  NotedBatches input(make_batch_source(dataset, {.batch_size = kBatch}, start.at.position));
  Evaluator evaluator(*strategy, graph, dataset);
  const auto metrics = make_metrics_writer("", false);
  const auto display = make_silent_display();
  const Schedule schedule({.learning_rate = 0.001, .total_epochs = 3.0});
  const TrainOutcome outcome = train({.graph = graph,
                                      .strategy = *strategy,
                                      .input = input,
                                      .dataset_size = kSize,
                                      .global_batch = kBatch,
                                      .schedule = schedule,
                                      .optimizer = "sgd",
                                      .evaluator = evaluator,
                                      .metrics = *metrics,
                                      .display = *display,
                                      .stop = [] { return std::optional<std::string_view>(); }},
                                     {.total_epochs = 3}, start);
  EXPECT_EQ(outcome.progress.at.step, 18) << "1 step of epoch 0, 3 of epoch 1, 6 of epoch 2";
  EXPECT_EQ(outcome.progress.at.samples, 3 * kSize);
  EXPECT_EQ(outcome.progress.at.position, (ps::DataPosition{3, 0}));
  std::map<std::int64_t, int> samples;
  for (const auto& [sample, count] : input.times()) {
    EXPECT_EQ(count, 1) << "sample " << sample.second << " of epoch " << sample.first;
    ++samples[sample.first];
  }
  EXPECT_EQ(samples, (std::map<std::int64_t, int>{{0, 4}, {1, 12}, {2, 24}}));
}

}  // namespace
}  // namespace syncopate
