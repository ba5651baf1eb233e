#include "ps/server/served_requests.h"

#include <gtest/gtest.h>
#include <malloc.h>

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

// With the shard's part (shard_scale_test.cc) this is less than 60 MB for 1,000 workers.
TEST(ServedRequests, TakeLessThan30MegabytesFor50000Pushes) {
  const auto bytes_in_use = [] {
    const struct mallinfo2 use = mallinfo2();
    return use.uordblks + use.hblkhd;
  };
  const std::size_t before = bytes_in_use();
  if (before == 0) GTEST_SKIP() << "this allocator does not count its memory";
  ServedRequests requests;
  for (std::uint64_t token = 1; token <= 50'000; ++token) {
    requests.add(token, static_cast<int>(token % 1000), 1, static_cast<int>(token / 1000),
                 push_number(1));
  }
  const std::size_t bytes = bytes_in_use() - before;
  EXPECT_LT(bytes, std::size_t{30'000'000});
  std::printf("50,000 open pushes: %.1f MB\n", 1e-6 * static_cast<double>(bytes));
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
