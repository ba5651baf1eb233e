#include "ps/server/served_requests.h"

#include <gtest/gtest.h>

#include <ctime>

namespace syncopate::ps {
namespace {

wire::PushT push_number(std::uint64_t sequence) {
  wire::PushT push;
  push.sequence = sequence;
  return push;
}

TEST(ServedRequests, KnowAPushByAllPartsOfItsName) {
  ServedRequests requests;
  requests.add(1, 3, 2, 5, push_number(7));
  requests.add(2, 3, 2, 6, {});
  EXPECT_TRUE(requests.has_push(3, 2, 5, 7));
  EXPECT_FALSE(requests.has_push(4, 2, 5, 7));
  EXPECT_FALSE(requests.has_push(3, 1, 5, 7));
  EXPECT_FALSE(requests.has_push(3, 2, 6, 7));
  EXPECT_FALSE(requests.has_push(3, 2, 5, 8));
  EXPECT_FALSE(requests.has_push(3, 2, 6, 0)) << "a pull";
  ASSERT_NE(requests.find(2), nullptr);
  EXPECT_EQ(requests.find(2)->bucket, 6);
  EXPECT_EQ(requests.find(3), nullptr);
}

TEST(ServedRequests, KnowAPushThatWasSentTwiceUntilBothAreAnswered) {
  ServedRequests requests;
  requests.add(1, 0, 1, 0, push_number(1));
  requests.add(2, 0, 1, 0, push_number(1));
  requests.erase(1);
  EXPECT_TRUE(requests.has_push(0, 1, 0, 1));
  requests.erase(2);
  requests.erase(2);
  EXPECT_FALSE(requests.has_push(0, 1, 0, 1));
}

// When each probe compared all open requests, this test took over ten seconds.
TEST(ServedRequests, FindAPushAmong50000InConstantTime) {
  constexpr int kWorkers = 1000;
  constexpr int kBuckets = 50;
  constexpr double kMostSeconds = 2.0;  // of CPU time, also under a sanitizer
  ServedRequests requests;
  std::uint64_t token = 0;
  for (int worker = 0; worker < kWorkers; ++worker) {
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      requests.add(++token, worker, 1, bucket, push_number(9));
    }
  }
  const std::clock_t begin = std::clock();
  int known = 0;
  for (int worker = 0; worker < kWorkers; ++worker) {
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      known += requests.has_push(worker, 1, bucket, 9) ? 1 : 0;
    }
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(known, kWorkers * kBuckets);
  EXPECT_LT(seconds, kMostSeconds);
}

}  // namespace
}  // namespace syncopate::ps
