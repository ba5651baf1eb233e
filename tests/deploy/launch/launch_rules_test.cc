// Tests launch's rules: for which failed roles it stops the job, without which roles the job
// continues, and which roles it starts again.
#include "deploy/launch/launch_rules.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

constexpr FailureRule kStop = FailureRule::kStop;
constexpr FailureRule kContinue = FailureRule::kContinue;

struct Chosen {
  std::string name;
  OnFailure on_failure;
  LaunchedJob job;
  RoleRule workers;
  RoleRule servers;
};

class ChosenRules : public testing::TestWithParam<Chosen> {};

TEST_P(ChosenRules, FollowFromTheRolesThatTheJobRequires) {
  const Chosen& row = GetParam();
  const LaunchRules rules = choose_rules(row.on_failure, 3, row.job);
  EXPECT_EQ(rules.most_restarts, 3);
  EXPECT_EQ(rules.workers.on_failure, row.workers.on_failure);
  EXPECT_EQ(rules.workers.restarts_alone, row.workers.restarts_alone);
  EXPECT_EQ(rules.servers.on_failure, row.servers.on_failure);
  EXPECT_EQ(rules.servers.restarts_alone, row.servers.restarts_alone);
  EXPECT_EQ(rules.restarts_together, row.job.has_checkpoints);
}

LaunchedJob job_with_servers(ps::ConsistencyOptions consistency, bool has_checkpoints = true) {
  return {.has_servers = true, .consistency = consistency, .has_checkpoints = has_checkpoints};
}

const ps::ConsistencyOptions kSync{.consistency = ps::Consistency::kSync};
const ps::ConsistencyOptions kBackups{.consistency = ps::Consistency::kSync, .backup_workers = 1};
const ps::ConsistencyOptions kSsp{.consistency = ps::Consistency::kSsp};
const ps::ConsistencyOptions kAsync{.consistency = ps::Consistency::kAsync};

INSTANTIATE_TEST_SUITE_P(
    Each, ChosenRules,
    testing::Values(
        Chosen{"WithoutServers",
               OnFailure::kAuto,
               {.consistency = kAsync, .has_checkpoints = true},
               {kStop, false},
               {kStop, false}},
        Chosen{"WithoutServersContinue",
               OnFailure::kContinue,
               {.has_checkpoints = true},
               {kContinue, false},
               {kContinue, false}},
        Chosen{"Sync", OnFailure::kAuto, job_with_servers(kSync), {kStop, false}, {kStop, true}},
        Chosen{"Backups",
               OnFailure::kAuto,
               job_with_servers(kBackups),
               {kContinue, true},
               {kStop, true}},
        Chosen{"Ssp", OnFailure::kAuto, job_with_servers(kSsp), {kContinue, true}, {kStop, true}},
        Chosen{
            "Async", OnFailure::kAuto, job_with_servers(kAsync), {kContinue, true}, {kStop, true}},
        Chosen{"AsyncWithoutCheckpoints",
               OnFailure::kAuto,
               job_with_servers(kAsync, false),
               {kContinue, true},
               {kStop, false}},
        Chosen{"AsyncStop",
               OnFailure::kStop,
               job_with_servers(kAsync),
               {kStop, false},
               {kStop, false}},
        Chosen{"AsyncContinue",
               OnFailure::kContinue,
               job_with_servers(kAsync),
               {kContinue, true},
               {kContinue, true}},
        Chosen{"SyncContinue",
               OnFailure::kContinue,
               job_with_servers(kSync),
               {kContinue, false},
               {kContinue, true}}),
    [](const auto& row) { return row.param.name; });

TEST(AWorkerThatFailed, EndsTheJobOnlyIfOtherWorkersWaitForIt) {
  const auto ends_the_job = [](const ps::ConsistencyOptions& consistency) {
    return choose_rules(OnFailure::kStop, 0, job_with_servers(consistency))
        .workers.others_detect_failure;
  };
  EXPECT_TRUE(ends_the_job(kSync));
  EXPECT_FALSE(ends_the_job(kAsync));
  EXPECT_TRUE(choose_rules(OnFailure::kStop, 0, {}).workers.others_detect_failure) << "no servers";
}

TEST(AServerThatFailed, IsAwaitedWhereServersAreRestarted) {
  const auto ends_the_job = [](int most_restarts) {
    return choose_rules(OnFailure::kAuto, most_restarts, job_with_servers(kAsync))
        .servers.others_detect_failure;
  };
  EXPECT_TRUE(ends_the_job(0));
  EXPECT_FALSE(ends_the_job(1)) << "workers wait for it";
}

}  // namespace
}  // namespace syncopate
