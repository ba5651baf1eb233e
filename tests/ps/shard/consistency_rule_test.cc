// Tests the clocks and choices of the consistency rule, without values.
#include "ps/shard/consistency_rule.h"

#include <gtest/gtest.h>

#include <ctime>

namespace syncopate::ps {
namespace {

PushRequest waiting_push(WorkerId worker, std::uint64_t sequence, std::uint64_t version) {
  return {
      .id = {worker, 1, sequence}, .bucket = 0, .version = version, .gradient = {}, .values = {}};
}

std::vector<std::size_t> choose(const ConsistencyRule& rule,
                                const std::vector<PushRequest>& waiting, std::uint64_t version) {
  std::vector<std::size_t> chosen;
  rule.choose(waiting, version, ShardTime(0), chosen);
  return chosen;
}

ConsistencyRule rule_of(const ConsistencyOptions& options, int workers) {
  ConsistencyRule rule(options);
  for (WorkerId worker = 0; worker < workers; ++worker) rule.join(worker, 1, 0, 0);
  return rule;
}

using Positions = std::vector<std::size_t>;

TEST(ConsistencyRule, UnderSyncChoosesOnceAllWorkersHavePushed) {
  const ConsistencyRule rule = rule_of({}, 2);
  const PushRequest one = waiting_push(0, 1, 1);
  EXPECT_EQ(choose(rule, {one, waiting_push(0, 2, 1)}, 1), Positions{})
      << "two pushes of one worker";
  EXPECT_EQ(choose(rule, {one, waiting_push(1, 1, 2)}, 1), Positions{})
      << "a push of another version";
  EXPECT_EQ(choose(rule, {one, waiting_push(1, 1, 1)}, 1), (Positions{0, 1}));
}

TEST(ConsistencyRule, UnderSyncAlwaysWaitsForOnePush) {
  const ConsistencyRule rule = rule_of({.backup_workers = 5}, 2);
  EXPECT_EQ(choose(rule, {}, 1), Positions{});
  EXPECT_EQ(choose(rule, {waiting_push(1, 1, 1), waiting_push(0, 1, 1)}, 1), Positions{0});
}

// The rule is fast for 3000 workers. When each of 3000 arrivals compared all pairs of waiting
// pushes, this test took over ten seconds.
TEST(ConsistencyRule, UnderSyncDoesLittleWorkForAllButTheLastPush) {
  constexpr int kWorkers = 3000;
  constexpr double kMostSeconds = 2.0;  // of CPU time, also under a sanitizer
  const ConsistencyRule rule = rule_of({}, kWorkers);
  std::vector<PushRequest> waiting;
  std::vector<std::size_t> chosen;
  const std::clock_t begin = std::clock();
  for (WorkerId worker = kWorkers - 1; worker >= 0; --worker) {
    ASSERT_TRUE(chosen.empty());
    waiting.push_back(waiting_push(worker, 1, 1));
    rule.choose(waiting, 1, ShardTime(0), chosen);
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(chosen.size(), static_cast<std::size_t>(kWorkers));
  EXPECT_LT(seconds, kMostSeconds);
}

TEST(ConsistencyRule, UnderSyncTakesTheFirstPushOfEachWorkerInAnyOrder) {
  ConsistencyRule rule({});
  for (const WorkerId worker : {7, 2, 9}) rule.join(worker, 1, 0, 0);
  const std::vector<PushRequest> waiting = {waiting_push(9, 1, 1), waiting_push(5, 1, 1),
                                            waiting_push(9, 2, 1), waiting_push(2, 1, 1)};
  EXPECT_EQ(choose(rule, waiting, 1), Positions{}) << "worker 7 has not pushed";
  rule.leave(7, 1);
  EXPECT_EQ(choose(rule, waiting, 1), (Positions{0, 1, 3}))
      << "the push of a worker that has left is included";
  EXPECT_EQ(rule.clocks(), (std::vector<WorkerClock>{{2, 1, 0}, {7, 1, 0}, {9, 1, 0}}));
}

TEST(ConsistencyRule, UnderAsyncChoosesTheFirstPushThatMayBegin) {
  ConsistencyRule rule = rule_of({.consistency = Consistency::kAsync}, 2);
  const std::vector<PushRequest> waiting = {waiting_push(1, 3, 1), waiting_push(0, 1, 9)};
  EXPECT_EQ(choose(rule, waiting, 4), Positions{0});
  rule.limit(std::vector<WorkerClock>{{0, 1, 1}, {1, 1, 2}});
  EXPECT_EQ(choose(rule, waiting, 4), Positions{1});
  rule.hold();
  EXPECT_EQ(choose(rule, waiting, 4), Positions{});
  rule.release();
  EXPECT_EQ(choose(rule, waiting, 4), Positions{0});
}

TEST(ConsistencyRule, AcceptsEachAscendingSequenceOnce) {
  ConsistencyRule rule = rule_of({}, 1);
  EXPECT_TRUE(rule.accept({0, 1, 1}));
  EXPECT_TRUE(rule.accept({0, 1, 4})) << "gaps are allowed";
  EXPECT_FALSE(rule.accept({0, 1, 4}));
  EXPECT_FALSE(rule.accept({0, 1, 3}));
  rule.join(0, 2, 1, 0);
  EXPECT_FALSE(rule.accept({0, 2, 1}));
  EXPECT_TRUE(rule.accept({0, 2, 2}));
}

TEST(ConsistencyRule, UnderALimitDoesNotWaitForSkippedPushes) {
  ConsistencyRule rule = rule_of({}, 2);
  rule.limit(std::vector<WorkerClock>{{0, 1, 3}, {1, 1, 1}});
  rule.advance({1, 1, 1});
  EXPECT_FALSE(rule.has_reached_limits());
  EXPECT_TRUE(rule.accept({0, 1, 4}));
  EXPECT_TRUE(rule.has_reached_limits()) << "push 3 cannot arrive after push 4";
}

TEST(ConsistencyRule, UnderALimitAndSyncDoesNotWaitForWorkersBeyondIt) {
  ConsistencyRule rule = rule_of({}, 2);
  rule.limit(std::vector<WorkerClock>{{0, 1, 1}, {1, 1, 1}});
  EXPECT_EQ(choose(rule, {waiting_push(0, 1, 1)}, 1), Positions{});
  EXPECT_TRUE(rule.accept({1, 1, 2}));
  EXPECT_EQ(choose(rule, {waiting_push(0, 1, 1), waiting_push(1, 2, 1)}, 1), Positions{0});
}

TEST(ConsistencyRule, UnderSspComparesWithTheSlowestActiveWorker) {
  ConsistencyRule rule = rule_of({.consistency = Consistency::kSsp, .max_staleness = 2}, 3);
  rule.advance({0, 1, 3});
  rule.advance({1, 1, 1});
  EXPECT_FALSE(rule.may_read(0, 3));
  EXPECT_TRUE(rule.may_read(1, 1));
  EXPECT_FALSE(rule.may_read(1, 2)) << "the values lack its own push";
  rule.leave(2, 1);
  EXPECT_TRUE(rule.may_read(0, 3));
  EXPECT_EQ(rule.standing(2, 1, 7).slowest, 1);
  EXPECT_EQ(rule.standing(2, 1, 7).sequence, 0U) << "the worker is known";
  EXPECT_EQ(rule.standing(2, 2, 7).sequence, 7U);
  rule.join(2, 1, 0, 1);
  EXPECT_TRUE(rule.may_read(0, 3)) << "worker 0 is level with the slowest";
  rule.advance({2, 1, 2});
  rule.advance({1, 1, 9});
  EXPECT_FALSE(rule.may_read(1, 9));
}

TEST(ConsistencyRule, RestoredKnowsClocksButHasNoActiveWorkers) {
  ConsistencyRule rule({});
  const std::vector<WorkerClock> clocks = {{3, 2, 17}};
  rule.restore(clocks);
  EXPECT_EQ(rule.clocks(), clocks);
  EXPECT_FALSE(rule.takes_part(3, 2));
  rule.join(3, 1, 50, 0);
  EXPECT_FALSE(rule.takes_part(3, 1)) << "an earlier incarnation";
  rule.join(3, 2, 0, 0);
  EXPECT_FALSE(rule.accept({3, 2, 17}));
  rule.restore(std::vector<WorkerClock>{{4, 1, 1}, {1, 1, 6}});
  rule.join(1, 1, 0, 0);
  EXPECT_FALSE(rule.accept({1, 1, 6})) << "the order of the clocks does not matter";
}

}  // namespace
}  // namespace syncopate::ps
