#include "bench/scaling.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

TEST(ThreadsInAll, AreDealtOutEvenlyOrNotAtAll) {
  EXPECT_EQ(lanes_per_replica(4, 1), 4);
  EXPECT_EQ(lanes_per_replica(4, 2), 2);
  EXPECT_THROW(lanes_per_replica(2, 4), UsageError);
  EXPECT_THROW(lanes_per_replica(3, 2), UsageError);
}

TEST(BatchOfAReplica, IsTheUsualOneWhateverTheNumberOfReplicas) {
  EXPECT_EQ(batch_per_replica({}, 64, 1), 64);
  EXPECT_EQ(batch_per_replica({}, 64, 2), 64);
  EXPECT_EQ(batch_per_replica({.batch_size_per_replica = 32}, 64, 2), 32);
}

TEST(BatchOfAReplica, IsAShareOfTheGlobalOneWhenThatIsGiven) {
  EXPECT_EQ(batch_per_replica({.batch_size = 64}, 128, 1), 64);
  EXPECT_EQ(batch_per_replica({.batch_size = 64}, 128, 2), 32);
  EXPECT_THROW(batch_per_replica({.batch_size = 63}, 128, 2), UsageError);
}

}  // namespace
}  // namespace syncopate::bench
