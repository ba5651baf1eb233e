// Tests the errors of a misused shard: their messages, and that a refused call changes nothing.
#include <gtest/gtest.h>

#include <optional>

#include "models/base/errors.h"
#include "ps/shard/shard.h"
#include "tests/ps/shard/shard_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

class ShardMisuse : public testing::Test {
 protected:
  std::span<const float> gradient() const {
    return part_of(gradients_[0], shard_->buckets().at(0));
  }
  bool push(int worker, std::uint64_t version, std::uint64_t sequence = 1) {
    PushRequest request = sync_push(worker, 0, version, gradient(), 0.1F);
    request.id.sequence = sequence;
    return shard_->push(request);
  }
  std::vector<ShardEvent> work() {
    std::vector<ShardEvent> events;
    shard_->work(0, events);
    return events;
  }

  // Expects that a refused call has left no trace: two valid pushes still make one update due.
  void expect_unchanged() {
    EXPECT_EQ(shard_->view(0).version, 1U);
    EXPECT_TRUE(push(0, 1, 8));
    EXPECT_FALSE(shard_->claim(0));
    EXPECT_TRUE(push(1, 1, 8));
    EXPECT_EQ(work().size(), 2U);
    EXPECT_EQ(shard_->view(0).version, 2U);
  }

  std::unique_ptr<Shard> shard_ = make_shard(decaying("sgd"), 2);
  std::vector<Gradient> gradients_ = random_gradients(1, 1);
};

TEST_F(ShardMisuse, ASecondPushOfOneVersionIsDroppedOnceTheFirstIsApplied) {
  EXPECT_TRUE(push(0, 1, 1));
  EXPECT_TRUE(push(0, 1, 2));
  EXPECT_TRUE(push(1, 1, 1));
  const std::vector<ShardEvent> events = work();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2].kind, ShardEvent::Kind::kDropped);
  EXPECT_EQ(events[2].worker, 0);
  EXPECT_EQ(events[2].sequence, 2U);
  EXPECT_EQ(shard_->view(0).version, 2U);
}

TEST_F(ShardMisuse, AnUnknownWorkerIsRefused) {
  EXPECT_FALSE(push(2, 1));
  EXPECT_FALSE(push(-1, 1));
  EXPECT_THROW(shard_->join(-1, 1, 0), InternalError);
  std::vector<float> values(64);
  EXPECT_FALSE(shard_->read({.worker = 2, .incarnation = 1, .bucket = 0, .values = values}));
  expect_unchanged();
}

TEST_F(ShardMisuse, AGradientOfOtherValuesIsDropped) {
  for (const std::uint64_t version : {2, 0}) {
    EXPECT_TRUE(push(0, version, 3 - version));
    const std::vector<ShardEvent> events = work();
    ASSERT_EQ(events.size(), 1U) << version;
    EXPECT_EQ(events[0].kind, ShardEvent::Kind::kDropped);
  }
  expect_unchanged();
}

TEST_F(ShardMisuse, BytesThatAreInvalidForTheirCodecAreRefused) {
  PushRequest request = sync_push(0, 0, 1, gradient(), 0.1F);
  request.gradient.bytes = request.gradient.bytes.first(255);
  EXPECT_TRUE(contains(message_of<ShapeError>([&] { shard_->push(request); }),
                       "255 bytes, expected 64 elements as their codec encodes them"));
  expect_unchanged();
}

TEST_F(ShardMisuse, RoomForAnotherNumberOfValuesIsRefused) {
  std::vector<float> values(63);
  PushRequest request = sync_push(0, 0, 1, gradient(), 0.1F);
  request.values = values;
  EXPECT_TRUE(contains(message_of<ShapeError>([&] { shard_->push(request); }),
                       "room for 63 values, expected 64"));
  EXPECT_THROW(shard_->read({.worker = 0, .incarnation = 1, .bucket = 0, .values = values}),
               ShapeError);
  std::vector<std::uint16_t> words(64);
  request.values = AnswerMemory(std::span(words));
  EXPECT_TRUE(contains(message_of<ShapeError>([&] { shard_->push(request); }), "expected f32"));
  expect_unchanged();
}

TEST_F(ShardMisuse, OptionsThatContradictEachOtherAreRefused) {
  for (const ConsistencyOptions& options :
       {ConsistencyOptions{.consistency = Consistency::kSsp, .max_staleness = -1},
        ConsistencyOptions{.backup_workers = -1},
        ConsistencyOptions{.consistency = Consistency::kAsync, .backup_workers = 1},
        ConsistencyOptions{.staleness_rule = StalenessRule::kInverse},
        ConsistencyOptions{.compensation = -1.0F}, ConsistencyOptions{.mean_square_decay = 1.0F}}) {
    EXPECT_THROW(make_shard(decaying("sgd"), 2, options), UsageError);
  }
}

TEST_F(ShardMisuse, AGradientOfAnotherLengthIsRefused) {
  const std::vector<float> short_one(3);
  EXPECT_TRUE(
      contains(message_of<ShapeError>([&] { shard_->push(sync_push(0, 0, 1, short_one, 0.1F)); }),
               "a gradient of 3 elements, expected 64"));
  expect_unchanged();
}

TEST_F(ShardMisuse, AnUnknownBucketIsRefused) {
  EXPECT_TRUE(contains(message_of<InternalError>([&] { (void)shard_->view(5); }),
                       "no bucket 5, expected one in [0, 5)"));
  EXPECT_THROW((void)shard_->view(-1), InternalError);
  EXPECT_THROW((void)shard_->claim(5), InternalError);
}

TEST_F(ShardMisuse, APieceThatIsNotUnderWayIsRefused) {
  std::vector<ShardEvent> events;
  const Bucket whole = shard_->buckets().at(0);
  EXPECT_THROW(shard_->update({0, 0, whole}), InternalError) << "no task is under way";
  push(0, 1);
  push(1, 1);
  EXPECT_THROW(shard_->update({0, 1, whole}), InternalError) << "the piece is not claimed";
  const std::optional<Piece> piece = shard_->claim(0);
  ASSERT_TRUE(piece);
  EXPECT_THROW(shard_->update({0, piece->task + 1, whole}), InternalError)
      << "the piece belongs to another task";
  EXPECT_THROW(shard_->update({0, piece->task, {whole.begin, whole.end + 1}}), InternalError)
      << "the piece lies beyond the task";
  shard_->update(*piece);
  shard_->take_events(events);
  EXPECT_EQ(events.size(), 2U);
  EXPECT_TRUE(contains(message_of<InternalError>([&] { shard_->update(*piece); }),
                       "of bucket 0, task 1"));
}

TEST_F(ShardMisuse, BucketsAndValuesThatDoNotFitAreRefused) {
  const auto make = [](std::vector<Bucket> buckets, std::int64_t values) {
    const Shard shard(small_layout(), std::move(buckets), make_optimizer({}), {},
                      make_host_tensor({values}, DType::kF32));
  };
  const std::int64_t total = small_layout().total();
  EXPECT_NO_THROW(make({{0, 100}, {100, 200}}, 200));
  EXPECT_TRUE(contains(message_of<ShapeError>([&] {
                         make({{100, 200}, {0, 101}}, 201);
                       }),
                       "bucket 0 is [100, 200), expected elements that no other bucket has"))
      << "the buckets overlap";
  EXPECT_THROW(make({{total - 1, total + 1}}, 2), ShapeError) << "the bucket ends beyond the arena";
  EXPECT_THROW(make({{-1, 1}}, 2), ShapeError) << "the bucket begins before the arena";
  EXPECT_THROW(make({{5, 5}}, 0), ShapeError) << "the bucket is empty";
  EXPECT_TRUE(contains(message_of<ShapeError>([&] {
                         make({{0, 100}}, 99);
                       }),
                       "99 values, expected 100, the elements of its buckets"));
}

}  // namespace
}  // namespace syncopate::ps
