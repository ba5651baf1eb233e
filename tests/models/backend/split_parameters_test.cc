// Tests that buckets which cut parameters, as a placement on several shards makes them, do not
// change any bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "models/backend/backend.h"
#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate {
namespace {

constexpr std::int64_t kSplitBatch = 5;
constexpr std::uint64_t kSteps = 3;
constexpr float kLearningRate = 0.1F;

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.bytes(), b.bytes());
}

// The test parameters are the number of lanes, and whether groups run in another order than their
// parameters have in the arena.
class SplitParameters : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  CaseOptions options(std::vector<Bucket> buckets) const {
    return {
        .lanes = std::get<0>(GetParam()), .batch_size = kSplitBatch, .buckets = std::move(buckets)};
  }
  Batch batch(std::uint64_t step) const {
    return make_batch(graph_, reference::random_samples(graph_, kSplitBatch, 50 + step),
                      kSplitBatch);
  }
  void expect_same_step(std::uint64_t step) {
    const Scores whole = whole_.step(batch(step));
    const Scores split = split_.step(batch(step));
    EXPECT_EQ(whole.loss, split.loss) << "step " << step;
    EXPECT_TRUE(same_bits(whole_.model->logits(), split_.model->logits())) << "step " << step;
    EXPECT_TRUE(same_bits(whole_.arena.gradients(), split_.arena.gradients())) << "step " << step;
  }
  void update(BackendCase& subject, Bucket range) const {
    subject.backend->update(*optimizer_, {.learning_rate = kLearningRate, .step = 1}, subject.arena,
                            {}, range);
  }

  Graph graph_ = std::get<1>(GetParam()) ? crossed_branches_network() : everything_network();
  reference::Variables variables_ = reference::random_variables(graph_, 41);
  std::unique_ptr<Optimizer> optimizer_ = make_optimizer({.name = "sgd"});
  BackendCase whole_{graph_, variables_, options({})};
  BackendCase split_{graph_, variables_,
                     options(buckets_across_parameters(graph_.parameter_layout()))};
};

TEST_P(SplitParameters, TrainToTheBitsOfWholeParameters) {
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    expect_same_step(step);
    for (BackendCase* subject : {&whole_, &split_}) {
      update(*subject, {0, subject->arena.layout().total()});
      subject->arena.bump_all_versions();
    }
  }
  EXPECT_TRUE(same_bits(whole_.arena.values(), split_.arena.values()));
}

TEST_P(SplitParameters, AreCurrentAfterWritesOfSomeOfTheirBuckets) {
  const std::vector<Bucket>& buckets = split_.arena.buckets();
  constexpr std::size_t kTurns = 3;  // the buckets of a parameter, at most
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    expect_same_step(turn);
    for (std::size_t b = turn; b < buckets.size(); b += kTurns) {
      for (BackendCase* subject : {&whole_, &split_}) update(*subject, buckets[b]);
      split_.arena.bump_version(static_cast<BucketId>(b));
    }
    whole_.arena.bump_all_versions();
  }
  expect_same_step(kTurns);
}

INSTANTIATE_TEST_SUITE_P(Lanes, SplitParameters,
                         testing::Combine(testing::Values(1, 2), testing::Bool()));

}  // namespace
}  // namespace syncopate
