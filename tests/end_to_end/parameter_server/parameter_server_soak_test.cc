// Kills workers and servers again and again, and tests that every sample is counted once and that
// the network learns nevertheless. The tests take about fifteen minutes.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/parameter_server/killed_job.h"
#include "tests/end_to_end/parameter_server/order_history.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kWorkers = 4;
constexpr int kServers = 2;
constexpr seconds kSoak(60);

// Kills workers and servers of a job until 60 s have passed or the job has ended.
class Killer {
 public:
  explicit Killer(const RunningProgram& job) : job_(job) {}

  // Kills a worker every 2 s and a server every 10 s for 60 s; returns false if the job ended
  // first.
  bool work() {
    auto worker_at = begun_ + seconds(2);
    auto server_at = begun_ + seconds(10);
    while (steady_clock::now() < begun_ + kSoak) {
      const auto next = std::min(worker_at, server_at);
      if (job_.ends_within(std::chrono::ceil<std::chrono::milliseconds>(
              std::max(steady_clock::duration(0), next - steady_clock::now())))) {
        return false;
      }
      if (next == server_at) {
        kill_one("server", kServers);
        server_at += seconds(10);
      } else {
        kill_one("worker", kWorkers);
        worker_at += seconds(2);
      }
    }
    return true;
  }

  int killed = 0;

 private:
  void kill_one(const char* kind, int count) {
    const int index = std::uniform_int_distribution<int>(0, count - 1)(random_);
    // The role to kill may still be restarting after the previous kill.
    const auto victim = process_of(job_.pid(), {kind, index}, seconds(1));
    if (victim && kill(*victim, SIGKILL) == 0) ++killed;
  }

  const RunningProgram& job_;
  const steady_clock::time_point begun_ = steady_clock::now();
  std::mt19937 random_{7};
};

struct Losses {
  const char* rule;  // as in KilledJob
  std::vector<Role> victims;
  int kills;
};
std::ostream& operator<<(std::ostream& out, const Losses& losses) {
  return out << losses.rule << '_' << losses.victims.size();
}

class AJobWithManyKills : public testing::TestWithParam<Losses> {};

// 300 kills of any role under four rules. 50 kills of server 0 alone, after which every batch is in
// the values exactly once. 50 kills of workers alone, after which the summary has counted each
// batch that is in them twice.
TEST_P(AJobWithManyKills, EndsByItselfWithEverySampleCountedOnce) {
  const Losses& losses = GetParam();
  // Enough steps to train while all are killed, one after the other.
  const std::string rule = losses.rule;
  const int steps_between = rule == "async" || rule == "ssp" ? 500 : 200;
  const KilledJob killed{
      .rule = losses.rule, .steps = steps_between * losses.kills, .snapshot_every = "0.3"};
  const TemporaryFolder scratch;
  RunningProgram job(killed.command(scratch), seconds(550));
  std::mt19937 random(11);
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\""));
  Kills kills;
  const auto all = [&] { return kills.workers + kills.servers; };
  while (all() < losses.kills && !job.ends_within(std::chrono::milliseconds(300 + below(500)))) {
    const Role victim = losses.victims[below(losses.victims.size())];
    const auto process = process_of(job.pid(), victim, seconds(1));
    if (!process || kill(*process, SIGKILL) != 0) continue;
    ++(std::string(victim.kind) == "worker" ? kills.workers : kills.servers);
  }
  EXPECT_GE(all(), losses.kills * 9 / 10) << "the job ended early";
  const ProgramResult result = job.wait();
  expect_ended_exactly(killed, scratch, result, kills);
}

const std::vector<Role> kAllRoles{
    {"worker", 0}, {"worker", 1}, {"worker", 2}, {"server", 0}, {"server", 1}};
const std::vector<Role> kAllWorkers{{"worker", 0}, {"worker", 1}, {"worker", 2}};
INSTANTIATE_TEST_SUITE_P(
    Under, AJobWithManyKills,
    testing::Values(Losses{"async", kAllRoles, 75}, Losses{"ssp", kAllRoles, 75},
                    Losses{"sync", kAllRoles, 75}, Losses{"backup", kAllRoles, 75},
                    Losses{"ssp", {{"server", 0}}, 25}, Losses{"backup", {{"server", 0}}, 25},
                    Losses{"async", kAllWorkers, 25}, Losses{"ssp", kAllWorkers, 25}),
    testing::PrintToStringParamName());

struct Soak {
  const char* consistency;
  int epochs;  // enough epochs to train for longer than 60 s
};
std::ostream& operator<<(std::ostream& out, const Soak& soak) { return out << soak.consistency; }

class AJob : public testing::TestWithParam<Soak> {};

TEST_P(AJob, LearnsWhileItsRolesAreKilledForAMinute) {
  const Soak& soak = GetParam();
  const TemporaryFolder scratch;
  RunningProgram job(
      syncopate_command(as_words(
          "launch --workers", std::to_string(kWorkers), "--servers", std::to_string(kServers),
          "--restart 1000 -- train --strategy parameter-server --consistency", soak.consistency,
          "--model mnist-cnn --data digits --cache-dir", SYNCOPATE_TEST_CACHE,
          "--threads 1 --epochs", std::to_string(soak.epochs),
          "--lr-schedule cosine --no-progress --metrics", scratch / "m.jsonl", "--record",
          scratch / "order", "--checkpoint-dir", scratch / "ck", "--snapshot-every 1")),
      seconds(400));
  Killer killer(job);
  EXPECT_TRUE(killer.work()) << "the job ended before the minute was over";
  successful(job.wait());
  // Under sync fewer roles are killed, because the whole job starts again after the loss of a
  // worker, and a role that is not running yet is skipped.
  EXPECT_GE(killer.killed, 15);
  EXPECT_GE(summary_of(scratch / "m.jsonl").at("test_accuracy"), 0.98);
  const int pushes_per_update = std::string(soak.consistency) == "sync" ? kWorkers : 1;
  for (int shard = 0; shard < kServers; ++shard) {
    expect_every_push_once(history_of(scratch / "order", shard), pushes_per_update);
  }
}

INSTANTIATE_TEST_SUITE_P(Under, AJob,
                         testing::Values(Soak{"async", 30}, Soak{"ssp", 22}, Soak{"sync", 12}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace syncopate::test
