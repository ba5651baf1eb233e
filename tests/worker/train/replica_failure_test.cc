// Tests that a replica that fails in the middle of a step ends the other replicas of its process at
// once, and that the caller receives its exception.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/train/train_step.h"

namespace syncopate {
namespace {

constexpr int kReplicas = 3;
constexpr std::int64_t kBatch = 12;
constexpr int kClasses = 4;
constexpr std::chrono::seconds kTimeout(5);

// Returns one batch again and again; a test decides how the batch is damaged.
class OneBatch final : public BatchSource {
 public:
  OneBatch() {
    for (std::int64_t i = 0; i < kBatch; ++i) label(i) = static_cast<std::int32_t>(i % kClasses);
  }
  std::int32_t& label(std::int64_t sample) {
    return batch_.target.i32()[static_cast<std::size_t>(sample)];
  }

  const Batch& next() override { return batch_; }
  ps::DataPosition position() const override { return {}; }
  std::int64_t batches_per_epoch() const override { return 1; }
  InputCounters counters() const override { return {}; }

 private:
  Batch batch_{{make_host_tensor({kBatch, 8, 8, 1}, DType::kU8)},
               make_host_tensor({kBatch}, DType::kI32),
               kBatch,
               kBatch};
};

class AReplica : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  AReplica() {
    StrategyOptions options;
    options.name = std::get<0>(GetParam());
    options.seed = 5;
    options.replicas = kReplicas;
    options.batch_size_per_replica = kBatch / kReplicas;
    options.bucket_bytes = 1024;  // makes several buckets
    strategy_ = make_strategy(options, graph_);
  }

  int failing_replica() const { return std::get<1>(GetParam()); }
  void step() { (void)train_step(*strategy_, input_, {.learning_rate = 0.01F, .step = ++steps_}); }

  // Returns when `call` has returned. After a timeout it wakes `call` and reports a failure, so
  // that no test hangs.
  template <typename Call>
  void within_timeout(const Call& call) {
    std::future<void> done = std::async(std::launch::async, call);
    if (done.wait_for(kTimeout) != std::future_status::ready) {
      ADD_FAILURE() << "the call does not return";
      strategy_->abort("the test has waited long enough");
    }
    done.get();
  }
  void expect_all_later_calls_to_fail() {
    for (int again = 0; again < 2; ++again) {
      EXPECT_THROW(within_timeout([this] { step(); }), Error);
    }
    const double mine = 1.0;
    EXPECT_THROW(within_timeout([&] {
                   synchronous_job(*strategy_).gather({&mine, 1});
                 }),
                 PeerError);
  }

  Graph graph_ = build_network(
      "mlp",
      {.sample_shape = {8, 8, 1}, .classes = kClasses, .input = {DType::kU8, {0.0F}, {1.0F}}});
  OneBatch input_;
  std::unique_ptr<Strategy> strategy_;
  std::int64_t steps_ = 0;
};

TEST_P(AReplica, ThatThrowsInForwardEndsAllWithItsError) {
  within_timeout([this] { step(); });
  const std::int64_t sample = failing_replica() * kBatch / kReplicas + 1;
  input_.label(sample) = kClasses;
  EXPECT_TRUE(
      contains(message_of<ShapeError>([&] { within_timeout([this] { step(); }); }), "label 4"));
  input_.label(sample) = 0;
  expect_all_later_calls_to_fail();
}

TEST_P(AReplica, ThatThrowsBetweenTwoBucketsEndsAllWithItsError) {
  const auto failing_step = [this](Replica& replica) {
    VariableStore& variables = *replica.variables;
    variables.pull({.learning_rate = 0.01F, .step = 1});
    const Batch& all = input_.next();
    const std::int64_t begin = replica.index * kBatch / kReplicas;
    const std::int64_t end = (replica.index + 1) * kBatch / kReplicas;
    const Batch batch = all.rows(begin, end);
    const Scores scores =
        replica.model->forward(batch, [&](BucketId bucket) { variables.wait_values(bucket); });
    replica.model->backward([&](BucketId bucket) {
      if (replica.index == failing_replica() && bucket == 1)
        throw std::runtime_error("a broken wire");
      variables.push(bucket, {.scores = scores});
    });
    variables.commit();
  };
  ASSERT_GE(strategy_->replicas().front().arena->buckets().size(), 2U);
  EXPECT_EQ(message_of<std::runtime_error>(
                [&] { within_timeout([&] { strategy_->for_each_replica(failing_step); }); }),
            "a broken wire");
  expect_all_later_calls_to_fail();
}

INSTANTIATE_TEST_SUITE_P(Of, AReplica,
                         testing::Combine(testing::Values("mirrored", "central-storage",
                                                          "multi-worker-mirrored"),
                                          testing::Range(0, kReplicas)),
                         [](const auto& parameters) {
                           std::string name = std::get<0>(parameters.param);
                           std::erase(name, '-');
                           return name + std::to_string(std::get<1>(parameters.param));
                         });

}  // namespace
}  // namespace syncopate
