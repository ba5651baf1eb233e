// Tests that a push is applied exactly once, also when it is sent again or its worker is restarted.
#include <gtest/gtest.h>

#include "tests/ps/shard/one_value.h"

namespace syncopate::ps {
namespace {

TEST(Push, ThatIsSentAgainIsDroppedAndAnswered) {
  OneValue one(kAsync, 1);
  one.push(0, 1, 1);
  one.log();
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "dropped 0:1, answered 0:1 v2 =-1");
  one.push(0, 1, 1, {.wants_values = false});
  EXPECT_EQ(one.log(), "dropped 0:1");
}

TEST(Push, ThatIsSentAgainWhileItWaitsIsAnsweredTogetherWithTheFirst) {
  OneValue one({}, 2);
  one.push(0, 1, 1);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "dropped 0:1");
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(),
            "applied 0:1 v2, applied 1:1 v2, answered 0:1 v2 =-2, answered 0:1 v2 =-2, "
            "answered 1:1 v2 =-2");
}

TEST(Push, OfAnEarlierIncarnationIsDroppedWhileItWaits) {
  OneValue one({}, 2);
  one.push(0, 1, 1);
  one.read(0);
  one.shard().join(0, 2, 0);
  one.work();
  EXPECT_EQ(one.log(), "forgotten 0:1, forgotten 0:0");
  one.push(0, 2, 1);
  EXPECT_EQ(one.log(), "refused");
  one.push(0, 1, 1, {.gradient = 5.0F, .incarnation = 2});
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, answered 0:1 v2 =-6, answered 1:1 v2 =-6");
}

TEST(Push, OfAStepThatABucketHasFinishedIsNotAwaitedThere) {
  OneValue one(kAsync, 1);
  const std::vector<BucketId> ahead{0};
  one.shard().join(0, 2, 4, ahead);
  one.push(0, 5, 1, {.incarnation = 2});
  EXPECT_EQ(one.log(), "dropped 0:5, answered 0:5 v1 =0");
  one.push(0, 6, 1, {.incarnation = 2});
  EXPECT_EQ(one.log(), "applied 0:6 v2, answered 0:6 v2 =-1");
}

TEST(Push, OfAWorkerThatHasLeftIsRefusedUntilItJoinsAgain) {
  OneValue one(kAsync, 1);
  one.push(0, 1, 1);
  one.shard().leave(0, 1);
  one.log();
  one.push(0, 2, 2);
  one.read(0);
  EXPECT_EQ(one.log(), "refused, refused");
  one.shard().join(0, 1, 7);
  one.push(0, 1, 1);
  one.push(0, 2, 2);
  EXPECT_EQ(one.log(), "dropped 0:1, answered 0:1 v2 =-1, applied 0:2 v3, answered 0:2 v3 =-2")
      << "the worker continues at its own sequence";
}

TEST(Push, UpToTheSequenceThatItsWorkerJoinedWithIsKnown) {
  OneValue one(kAsync, 1);
  one.shard().join(1, 4, 10);
  one.push(1, 10, 1, {.incarnation = 4});
  EXPECT_EQ(one.log(), "dropped 1:10, answered 1:10 v1 =0");
  one.push(1, 12, 1, {.incarnation = 4});
  EXPECT_EQ(one.log(), "applied 1:12 v2, answered 1:12 v2 =-1");
}

TEST(Push, IsKnownToAShardThatWasRestored) {
  OneValue one(kAsync, 1);
  one.push(0, 1, 1);
  one.push(0, 2, 2);
  OneValue other(kAsync, 0);
  other.shard().restore(one.shard().snapshot());
  EXPECT_EQ(other.value(), -2.0F);
  other.push(0, 3, 3);
  EXPECT_EQ(other.log(), "refused");
  other.shard().join(0, 1, 0);
  other.push(0, 2, 2);
  other.push(0, 3, 3);
  EXPECT_EQ(other.log(), "dropped 0:2, answered 0:2 v3 =-2, applied 0:3 v4, answered 0:3 v4 =-3");
}

TEST(Leave, OfAnotherIncarnationChangesNothing) {
  OneValue one({}, 2);
  one.shard().join(1, 3, 0);
  one.shard().leave(1, 1);
  one.shard().leave(7, 1);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "") << "worker 1 is still waited for";
  one.shard().join(1, 2, 0);
  one.push(1, 1, 1, {.incarnation = 2});
  EXPECT_EQ(one.log(), "refused");
}

}  // namespace
}  // namespace syncopate::ps
