// Tests when a backend calls the hooks for values and for gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate {
namespace {

constexpr std::int64_t kHooksBatch = 5;
constexpr std::int64_t kOneBucketPerParameter = 1;  // in bytes
constexpr std::int64_t kAcrossParameters = 0;
constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// The test parameters are the number of lanes, bucket_bytes (or kAcrossParameters), and whether
// groups run in another order than their parameters have in the arena.
class BackendHooks : public testing::TestWithParam<std::tuple<int, std::int64_t, bool>> {
 protected:
  std::span<float> bucket(const Tensor& block, BucketId id) const {
    const Bucket range = subject_.arena.buckets().at(static_cast<std::size_t>(id));
    return block.rows(range.begin, range.end).f32();
  }
  std::vector<BucketId> every_bucket() const {
    std::vector<BucketId> ids(subject_.arena.buckets().size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }
  void poison_gradients() {
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      std::ranges::fill(subject_.arena.gradient(p).f32(), kPoison);
    }
  }

  Graph graph_ = std::get<2>(GetParam()) ? crossed_branches_network() : everything_network();
  reference::Variables variables_ = reference::random_variables(graph_, 31);
  reference::Samples samples_ = reference::random_samples(graph_, kHooksBatch, 32);
  reference::Result expected_ =
      reference::run(graph_, variables_, samples_, kHooksBatch, Mode::kTrain);
  Batch batch_ = make_batch(graph_, samples_, kHooksBatch);
  CaseOptions options_{.lanes = std::get<0>(GetParam()),
                       .batch_size = kHooksBatch,
                       .winograd = false,
                       .bucket_bytes = std::get<1>(GetParam()),
                       .buckets = std::get<1>(GetParam()) == kAcrossParameters
                                      ? buckets_across_parameters(graph_.parameter_layout())
                                      : std::vector<Bucket>()};
  BackendCase subject_{graph_, variables_, options_};
};

TEST_P(BackendHooks, RequestEveryBucketOnceAndUseTheValuesThatTheHookWrites) {
  const std::vector<float> values(subject_.arena.values().f32().begin(),
                                  subject_.arena.values().f32().end());
  (void)subject_.step(batch_);  // makes working copies, which become stale below
  std::ranges::fill(subject_.arena.values().f32(), kPoison);
  subject_.arena.bump_all_versions();
  subject_.set_state(variables_);
  std::vector<BucketId> asked;
  const Scores scores = subject_.model->forward(batch_, [&](BucketId id) {
    asked.push_back(id);
    const Bucket range = subject_.arena.buckets().at(static_cast<std::size_t>(id));
    std::copy(values.begin() + range.begin, values.begin() + range.end,
              bucket(subject_.arena.values(), id).begin());
    subject_.arena.bump_version(id);
  });
  subject_.model->backward([](BucketId) {});
  expect_equal(expected_, subject_, scores, graph_, tolerance(options_));
  std::ranges::sort(asked);
  EXPECT_EQ(asked, every_bucket());
}

TEST_P(BackendHooks, AreCalledForEveryBucketOnceInOrderWithFinalGradients) {
  poison_gradients();
  (void)subject_.model->forward(batch_, [](BucketId) {});
  std::vector<BucketId> handed_out;
  std::vector<std::vector<float>> copies;
  subject_.model->backward([&](BucketId id) {
    handed_out.push_back(id);
    const std::span<float> gradients = bucket(subject_.arena.gradients(), id);
    copies.emplace_back(gradients.begin(), gradients.end());
  });
  EXPECT_EQ(handed_out, every_bucket());
  for (std::size_t b = 0; b < copies.size(); ++b) {
    EXPECT_TRUE(
        std::ranges::equal(copies[b], bucket(subject_.arena.gradients(), static_cast<int>(b))))
        << "bucket " << b << " changed after its hook was called";
  }
  for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
    EXPECT_LE(reference::relative_l2(expected_.gradients[p], subject_.arena.gradient(p).f32()),
              tolerance(options_))
        << graph_.parameters[p].name;
  }
}

TEST_P(BackendHooks, ReceiveZeroGradientsForAnEmptyBatch) {
  poison_gradients();
  (void)subject_.model->forward(make_batch(graph_, {}, kHooksBatch), [](BucketId) {});
  std::vector<BucketId> handed_out;
  subject_.model->backward([&](BucketId id) {
    handed_out.push_back(id);
    EXPECT_TRUE(std::ranges::all_of(bucket(subject_.arena.gradients(), id),
                                    [](float gradient) { return gradient == 0.0F; }))
        << "bucket " << id;
  });
  EXPECT_EQ(handed_out, every_bucket());
}

INSTANTIATE_TEST_SUITE_P(Lanes, BackendHooks,
                         testing::Combine(testing::Values(1, 2, 3),
                                          testing::Values(kAcrossParameters, kOneBucketPerParameter,
                                                          4096, 1 << 30),
                                          testing::Bool()));

}  // namespace
}  // namespace syncopate
