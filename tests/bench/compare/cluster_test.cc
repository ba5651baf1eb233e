#include "bench/compare/cluster.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

using Words = std::vector<std::string>;

TEST(Clusters, StandForTheFlagsThatDescribeThem) {
  const std::vector<Cluster> clusters =
      parse_clusters({"equal,jitter", "slow-worker,slow-link"}, 8, 1.0);
  ASSERT_EQ(clusters.size(), 4U);
  EXPECT_EQ(clusters[0].flags,
            as_words("--service-time constant:1 --link-delay 50us --link-rate 10gbit"));
  EXPECT_EQ(clusters[1].flags.at(1), "exponential:1");
  EXPECT_EQ(clusters[2].flags.at(3), "worker=7,factor=4");
  EXPECT_EQ(clusters[2].faults.slow.at(0).worker, 7);
  EXPECT_EQ(clusters[3].flags.back(), "1gbit");
  EXPECT_EQ(clusters[3].faults.link.bytes_per_second, 1e9 / 8);
}

TEST(Clusters, HaveStepTimesInMultiplesOfOneStep) {
  for (const Cluster& cluster : parse_clusters({"equal,jitter,slow-worker"}, 4, 2.5)) {
    EXPECT_DOUBLE_EQ(cluster.faults.service_time.mean_milliseconds, 2.5) << cluster.name;
  }
}

TEST(Clusters, OfOnesOwnTakeFlagsInBraces) {
  const std::vector<Cluster> clusters = parse_clusters(
      {"mine{slow-worker=3x,pause=worker=1,at=2s,for=1s,link-rate=1gbit},equal"}, 4, 5.0);
  ASSERT_EQ(clusters.size(), 2U);
  const Cluster& mine = clusters.front();
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.faults.slow.at(0).worker, 3);
  EXPECT_EQ(mine.faults.slow.at(0).factor, 3.0);
  EXPECT_EQ(mine.faults.pauses.at(0).worker, 1);
  EXPECT_EQ(mine.faults.link.bytes_per_second, 1e9 / 8);
  EXPECT_EQ(mine.faults.service_time.mean_milliseconds, 5.0);
}

TEST(Clusters, OfOnesOwnHaveNoOtherStepTimeThanTheirCosts) {
  const Cluster mine = parse_clusters({"mine{costs=step=5ms}"}, 4, 1.0).front();
  EXPECT_DOUBLE_EQ(mine.faults.compute_seconds, 5e-3);
  EXPECT_EQ(mine.faults.service_time.mean_milliseconds, 0.0);
  const Cluster both =
      parse_clusters({"b{service-time=constant:2,costs=step=5ms}"}, 4, 1.0).front();
  EXPECT_DOUBLE_EQ(both.faults.service_time.mean_milliseconds, 2.0) << "it was given";
}

TEST(Clusters, AddTheCostsOfAMachineToTheirTimes) {
  Cluster cluster;
  add_flags(cluster, {.service_time = "constant:1",
                      .link_delay = "1ms",
                      .link_rate = "100mb",
                      .costs = "step=0.2ms,update=2gb,message=50us,copy=300mb"});
  EXPECT_DOUBLE_EQ(cluster.faults.compute_seconds, 0.2e-3);
  EXPECT_DOUBLE_EQ(cluster.faults.server_bytes_per_second, 2e9);
  EXPECT_DOUBLE_EQ(cluster.faults.link.delay_seconds, 1.05e-3);
  EXPECT_NEAR(cluster.faults.link.bytes_per_second, 75e6, 1.0) << "1/75 = 1/100 + 1/300";
  EXPECT_EQ(cluster.flags.at(cluster.flags.size() - 2), "--costs");
  EXPECT_TRUE(has_step_cost("step=1ms"));
  EXPECT_FALSE(has_step_cost("update=1gb"));
}

TEST(Clusters, RefuseMistakesWithWhatToType) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"eqal", "expected equal, jitter, slow-worker and slow-link, or a name of your own"},
      {"mine{}", "expected flags in braces, as in 'mine{slow-worker=4x"},
      {"mine{slow-worker=4x", "expected flags in braces"},
      {"{slow-worker=4x}", "expected a name"},
      {"a/b{slow-worker=4x}", "expected a name"},
      {"equal{link-rate=1gbit}", "equal has flags of its own; choose another name"},
      {"mine{speed=4}", "expected FLAG=VALUE in braces, found \"speed=4\"; the flags are service"},
      {"mine{slow-worker=4}", "expected a factor such as 4x"},
      {"mine{link-rate=fast}", "--link-rate"},
      {"equal,equal", "equal is named twice"}};
  for (const auto& [word, expected] : mistakes) {
    EXPECT_TRUE(contains(
        message_of<UsageError>([&, &word = word] { parse_clusters({word}, 4, 1.0); }), expected))
        << word;
  }
}

}  // namespace
}  // namespace syncopate::bench
