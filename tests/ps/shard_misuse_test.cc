// What a shard refuses, with what words, and that a refusal changes nothing.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "models/base/errors.h"
#include "ps/shard.h"
#include "tests/ps/shard_case.h"

namespace syncopate {
namespace {

// The message of the error of type E that the call must throw.
template <typename E>
std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// GoogleTest's own matchers need its mock library.
testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not say \"" << part << "\"";
}

class ShardMisuse : public testing::Test {
 protected:
  bool push(int worker, std::uint64_t version) {
    return shard_->push(worker, 0, version, part_of(gradients_[0], shard_->buckets().at(0)));
  }

  // Two good pushes still make the one update due.
  void expect_unchanged(int pushes_so_far) {
    EXPECT_EQ(shard_->read(0).version, 1U);
    if (pushes_so_far == 0) {
      EXPECT_FALSE(push(0, 1));
    }
    EXPECT_TRUE(push(1, 1));
  }

  std::unique_ptr<Shard> shard_ = make_shard(decaying("sgd"), 2);
  std::vector<Gradient> gradients_ = random_gradients(1, 1);
};

TEST_F(ShardMisuse, ASecondPushOfOneVersionIsRefused) {
  EXPECT_FALSE(push(0, 1));
  const std::string text = message<InternalError>([&] { push(0, 1); });
  EXPECT_TRUE(says(text, "bucket 0 by worker 0")) << text;
  EXPECT_TRUE(says(text, "version 1 is there already")) << text;
  expect_unchanged(1);
}

TEST_F(ShardMisuse, AnUnknownWorkerIsRefused) {
  EXPECT_TRUE(
      says(message<InternalError>([&] { push(2, 1); }), "worker 2: expected a worker in [0, 2)"));
  EXPECT_TRUE(says(message<InternalError>([&] { push(-1, 1); }), "worker -1"));
  expect_unchanged(0);
}

TEST_F(ShardMisuse, AGradientOfOtherValuesIsRefused) {
  EXPECT_TRUE(says(message<InternalError>([&] { push(0, 2); }),
                   "of version 2, expected the current one, 1"));
  EXPECT_TRUE(says(message<InternalError>([&] { push(0, 0); }), "of version 0"));
  expect_unchanged(0);
}

TEST_F(ShardMisuse, AGradientOfAnotherLengthIsRefused) {
  const std::vector<float> short_one(3);
  EXPECT_TRUE(says(message<ShapeError>([&] { shard_->push(0, 0, 1, short_one); }),
                   "a gradient of 3 elements, expected 64"));
  expect_unchanged(0);
}

TEST_F(ShardMisuse, AnUnknownBucketIsRefused) {
  EXPECT_TRUE(says(message<InternalError>([&] { (void)shard_->read(5); }),
                   "no bucket 5, expected one in [0, 5)"));
  EXPECT_THROW((void)shard_->read(-1), InternalError);
  EXPECT_THROW((void)shard_->claim(5, 1), InternalError);
}

TEST_F(ShardMisuse, APieceThatIsNotUnderWayIsRefused) {
  const UpdateStep step = update_step(1);
  const Bucket whole = shard_->buckets().at(0);
  EXPECT_THROW(shard_->update({0, 1, whole}, step), InternalError) << "not due";
  push(0, 1);
  push(1, 1);
  EXPECT_THROW(shard_->update({0, 1, whole}, step), InternalError) << "not claimed";
  const std::optional<Shard::Piece> piece = shard_->claim(0, 1);
  ASSERT_TRUE(piece);
  EXPECT_THROW(shard_->update({0, 2, whole}, step), InternalError) << "of another version";
  EXPECT_TRUE(shard_->update(*piece, step));
  EXPECT_TRUE(says(message<InternalError>([&] { shard_->update(*piece, step); }),
                   "of bucket 0 from version 1"));
}

TEST_F(ShardMisuse, BucketsAndValuesThatDoNotFitAreRefused) {
  const auto make = [](std::vector<Bucket> buckets, std::int64_t values) {
    const Shard shard(small_layout(), std::move(buckets), 1, make_optimizer({}),
                      make_host_tensor({values}, DType::kF32));
  };
  const std::int64_t total = small_layout().total();
  EXPECT_NO_THROW(make({{0, 100}, {100, 200}}, 200));
  EXPECT_TRUE(says(message<ShapeError>([&] {
                     make({{100, 200}, {0, 101}}, 201);
                   }),
                   "bucket 0 is [100, 200)"))
      << "they overlap";
  EXPECT_THROW(make({{total - 1, total + 1}}, 2), ShapeError) << "beyond the arena";
  EXPECT_THROW(make({{-1, 1}}, 2), ShapeError) << "before the arena";
  EXPECT_THROW(make({{5, 5}}, 0), ShapeError) << "empty";
  EXPECT_TRUE(says(message<ShapeError>([&] {
                     make({{0, 100}}, 99);
                   }),
                   "99 values, expected as many as its buckets have: 100"));
}

}  // namespace
}  // namespace syncopate
