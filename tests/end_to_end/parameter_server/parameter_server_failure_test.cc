// Tests workers and servers that are killed or stopped while others train: the job completes all
// its steps, no push is in the values twice, and no task waits for a dead one.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/end_to_end/parameter_server/killed_job.h"
#include "tests/end_to_end/parameter_server/order_history.h"
#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

using nlohmann::json;

constexpr const char* kStep = "\"event\":\"step\"";

Arguments launch(int workers, int servers, int restarts) {
  Arguments words =
      as_words("launch --workers", std::to_string(workers), "--servers", std::to_string(servers));
  if (restarts > 0) words = words + Arguments{"--restart", std::to_string(restarts)};
  return words +
         as_words(
             "-- train --strategy parameter-server --model mlp --data synthetic:1x28x28:10:2400 "
             "--threads 1 --no-progress --eval-every 1000 --log-every 1");
}

// Returns the complete lines of a metrics file that is still being written.
std::vector<json> steps_so_far(const std::filesystem::path& metrics) {
  const std::string text = read_text(metrics);
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  std::vector<json> steps;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(kStep) != std::string::npos) steps.push_back(json::parse(line));
  }
  return steps;
}

enum class Moment : std::uint8_t { kStartUp, kTraining, kSnapshots };

struct Loss {
  const char* rule;  // as in KilledJob
  Role victim;
  Moment moment;
};
std::ostream& operator<<(std::ostream& out, const Loss& loss) {
  const char* const moments[] = {"StartUp", "Training", "Snapshots"};
  return out << loss.rule << '_' << loss.victim.kind << loss.victim.index << '_'
             << moments[static_cast<int>(loss.moment)];
}

std::vector<Loss> all_losses() {
  std::vector<Loss> losses;
  for (const char* rule : {"async", "ssp", "sync", "backup"}) {
    for (const Role victim :
         {Role{"worker", 0}, Role{"worker", 1}, Role{"server", 0}, Role{"server", 1}}) {
      for (const Moment moment : {Moment::kStartUp, Moment::kTraining, Moment::kSnapshots}) {
        losses.push_back({rule, victim, moment});
      }
    }
  }
  for (const char* rule :
       {"ringmaster", "rennala", "async_rounds", "ssp_rounds", "quorum_rounds", "delayed_rounds"}) {
    for (const Role victim :
         {Role{"worker", 0}, Role{"worker", 1}, Role{"server", 0}, Role{"server", 1}}) {
      const bool has_one_server = std::string(rule) == "quorum_rounds";
      if (has_one_server && victim.index == 1 && std::string(victim.kind) == "server") continue;
      losses.push_back({rule, victim, Moment::kSnapshots});
    }
  }
  return losses;
}

class ARole : public testing::TestWithParam<Loss> {};

TEST_P(ARole, ThatIsKilledIsRestartedAndTheJobEndsWithAllItsSteps) {
  const Loss& loss = GetParam();
  KilledJob killed{.rule = loss.rule};
  if (killed.is_synchronous()) killed.steps = 120;
  // On a busy machine the other workers may train most of the job before worker 0, which writes the
  // metrics, has trained a few batches.
  const std::string rule = loss.rule;
  if (rule.starts_with("async") || rule.ends_with("_rounds")) killed.steps = 900;
  if (loss.moment == Moment::kSnapshots) killed.snapshot_every = "0.1";
  const TemporaryFolder scratch;
  RunningProgram job(killed.command(scratch));
  if (loss.moment != Moment::kStartUp) {
    ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", kStep, 10));
  }
  const auto victim = process_of(job.pid(), loss.victim);
  ASSERT_TRUE(victim);
  ASSERT_EQ(kill(*victim, SIGKILL), 0);
  const ProgramResult result = job.wait();
  const bool is_worker = std::string(loss.victim.kind) == "worker";
  expect_ended_exactly(killed, scratch, result,
                       is_worker ? Kills{.workers = 1} : Kills{.servers = 1});
  // Synchronous workers all need the killed worker, so the whole job ends and starts again.
  const bool with_all = killed.is_synchronous() && is_worker;
  EXPECT_TRUE(
      contains(result.err, with_all ? "launch: restart 1 of 1000" : "restarting it (1 of 1000)"));
}

INSTANTIATE_TEST_SUITE_P(Each, ARole, testing::ValuesIn(all_losses()),
                         testing::PrintToStringParamName());

// Returns the number of the shard's newest complete snapshot; 0 if there is none.
std::uint64_t newest_snapshot(const std::filesystem::path& folder, int shard) {
  const std::string prefix = "shard-" + std::to_string(shard) + "-";
  std::uint64_t newest = 0;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(prefix) || !name.ends_with(".snapshot")) continue;
    newest = std::max<std::uint64_t>(newest, std::stoull(name.substr(prefix.size())));
  }
  return newest;
}

class ARestartedServer : public testing::TestWithParam<int> {};

// Both shards receive the same pushes, so the pushes that the killed server's shard lacks at the
// end were lost with that server.
TEST_P(ARestartedServer, LosesOnlyPushesAfterItsLastSnapshot) {
  constexpr int kWorkers = 3;
  constexpr int kSteps = 3000;
  // The maximum number of pushes of three workers that a server has applied but the workers'
  // metrics do not show yet.
  constexpr std::int64_t kUnderWay = 20;
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  RunningProgram job(syncopate_command(launch(kWorkers, 2, 5) +
                                       as_words("--steps", std::to_string(kSteps),
                                                "--service-time constant:5 --metrics", metrics,
                                                "--record", scratch / "order", "--checkpoint-dir",
                                                scratch / "ck", "--snapshot-every 0.5")));
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, 50));
  // A server writes its snapshots one after another, however long the disk takes. Therefore the
  // newest file holds values that are no older than those in the file before.
  const auto wait_for_next_snapshot = [&] {
    const std::uint64_t newest = newest_snapshot(scratch / "ck", GetParam());
    return job.wait_until(metrics.parent_path(),
                          [&] { return newest_snapshot(scratch / "ck", GetParam()) > newest; });
  };
  ASSERT_TRUE(wait_for_next_snapshot());
  const auto step_before = steps_so_far(metrics).back().at("step").get<std::int64_t>();
  ASSERT_TRUE(wait_for_next_snapshot());
  // The lines below tell of no steps if there were none.
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, steps_so_far(metrics).size() + 5));
  const auto victim = process_of(job.pid(), {"server", GetParam()});
  ASSERT_TRUE(victim);
  const std::uint64_t newest = newest_snapshot(scratch / "ck", GetParam());
  ASSERT_EQ(kill(*victim, SIGKILL), 0);
  const auto last_step = steps_so_far(metrics).back().at("step").get<std::int64_t>();
  const ProgramResult result = successful(job.wait());

  const ShardHistory killed = history_of(scratch / "order", GetParam());
  const ShardHistory other = history_of(scratch / "order", 1 - GetParam());
  EXPECT_EQ(killed.starts, 2);
  const std::string rolled_back = "rolled back to snapshot ";
  const std::size_t at = result.err.find(rolled_back);
  ASSERT_NE(at, std::string::npos) << result.err;
  EXPECT_GE(std::stoull(result.err.substr(at + rolled_back.size())), newest);
  // Server 0 learns from its workers how far they were, any other server from server 0.
  const std::string lost =
      GetParam() == 0 ? " after the last snapshot of server 0 " : " acknowledged after it ";
  EXPECT_TRUE(contains(result.err, lost));
  const auto pushes = [](const ShardHistory& shard) {
    return static_cast<std::int64_t>(shard.applied.begin()->second.size());
  };
  EXPECT_LE(pushes(other) - pushes(killed), last_step - step_before + kUnderWay) << result.err;
  // A step that the restored snapshot of server 0 does not contain is trained once more. The
  // exception is the one step of each worker that the kill interrupted: the worker pushes the rest
  // of it to the restored server, and the buckets that it had pushed before are lost.
  for (const auto& [bucket, applied] : (GetParam() == 0 ? killed : other).applied) {
    EXPECT_GE(std::ssize(applied), kSteps - (GetParam() == 0 ? kWorkers : 0)) << bucket;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ARestartedServer, testing::Values(0, 1));

// Measures the time from each of worker 0's steps to the next. Other load on the machine affects
// few of these times.
struct StepTimes {
  double median = 0.0;
  double longest = 0.0;
};
StepTimes times_between(const std::vector<json>& steps, std::size_t first, std::size_t last) {
  std::vector<double> times;
  for (std::size_t i = first + 1; i <= last; ++i) {
    times.push_back(steps[i].at("seconds").get<double>() -
                    steps[i - 1].at("seconds").get<double>());
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], times.back()};
}

TEST(AWorkerThatIsStopped, DoesNotSlowTheOthers) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  const EndTimer since_start;
  RunningProgram job(syncopate_command(launch(4, 1, 0) +
                                       as_words("--steps 4000 --service-time constant:20 --metrics",
                                                metrics, "--batch-size-per-replica 8")));
  // The job trains for 20 s, so that on a busy machine too it goes on when the worker continues.
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, 80));
  const auto victim = worker_of(job.pid(), 3);
  ASSERT_TRUE(victim);
  ASSERT_EQ(kill(*victim, SIGSTOP), 0);
  const std::size_t stopped_at = steps_so_far(metrics).size();
  // 15 steps take 0.3 s, a tenth of the time until the servers declare the worker dead: workers
  // that waited for it would take them only then.
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, static_cast<int>(stopped_at) + 15));
  EXPECT_FALSE(contains(job.err_so_far(), "worker 3 "));
  // The servers declare the stopped worker dead after 3.5 s. On a busy machine worker 0, which
  // writes the metrics, may train few of the steps, so the lines that follow are few.
  ASSERT_TRUE(job.wait_until_err_has("worker 3 (host ")) << job.err_so_far();
  const auto declared_at = static_cast<int>(steps_so_far(metrics).size());
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, declared_at + 15));
  const std::vector<json> steps = steps_so_far(metrics);
  const StepTimes before = times_between(steps, 20, stopped_at - 1);
  const StepTimes after = times_between(steps, stopped_at - 1, steps.size() - 1);
  if (const auto starvation = since_start.starvation()) {
    std::cerr << "the times of steps are not compared, because " << *starvation << "\n";
  } else {
    EXPECT_NEAR(after.median / before.median, 1.0, 0.05);
    EXPECT_LT(after.longest, 1.0) << "they waited for it";
  }

  // The worker continues and learns that the servers declared it dead.
  ASSERT_EQ(kill(*victim, SIGCONT), 0);
  const ProgramResult result = job.wait();
  EXPECT_EQ(result.exit_code, 1) << "the worker may not be restarted: " << result.err;
  EXPECT_TRUE(contains(result.err, "sent nothing for longer than the peer timeout"));
  EXPECT_EQ(summary_of(metrics).at("steps"), 4000);
  EXPECT_EQ(summary_of(metrics).at("staleness").size(), 4U);
}

TEST(AWorkerThatIsStopped, WhenTheOthersCompleteTheJobDoesNotFailTheJob) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  RunningProgram job(syncopate_command(
      launch(3, 2, 0) + as_words("--steps 3000 --service-time constant:5 --metrics", metrics)));
  const auto victim = worker_of(job.pid(), 1);
  ASSERT_TRUE(victim);
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, 20));
  ASSERT_EQ(kill(*victim, SIGSTOP), 0);
  const ProgramResult result = successful(job.wait());
  EXPECT_TRUE(
      contains(result.err, "worker 1 is stopped: SIGCONT, so that it can end", "completed"));
  EXPECT_FALSE(contains(result.err, "--resume")) << "there is nothing left to train";
  EXPECT_EQ(summary_of(metrics).at("steps"), 3000);
}

class AnyWorkerThatIsStopped
    : public testing::TestWithParam<std::tuple<std::vector<std::string>, int>> {};

TEST_P(AnyWorkerThatIsStopped, IsAwaitedUntilItsPeerTimeout) {
  const auto& [consistency, index] = GetParam();
  const TemporaryFolder scratch;
  RunningProgram job(syncopate_command(
      launch(3, 2, 0) + consistency +
      as_words("--steps 3000 --service-time constant:5 --metrics", scratch / "m.jsonl")));
  // The worker is looked for first, and the job is long: on a busy machine a job of two seconds was
  // over before this test went on.
  const auto victim = worker_of(job.pid(), index);
  ASSERT_TRUE(victim);
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", kStep, 1));
  ASSERT_EQ(kill(*victim, SIGSTOP), 0) << job.err_so_far();
  ASSERT_TRUE(job.wait_until_err_has("step 3000")) << "the others did not go on";
  kill(*victim, SIGKILL);
  const ProgramResult result = job.wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("steps"), 3000);
}

INSTANTIATE_TEST_SUITE_P(
    Each, AnyWorkerThatIsStopped,
    testing::Combine(
        testing::Values(Arguments{"--consistency", "async"}, Arguments{"--consistency", "ssp"},
                        as_words("--consistency async --push displacement --sync-every 5"),
                        as_words("--consistency sync --backup-workers 1")),
        testing::Values(0, 2)),
    [](const auto& parameters) {
      const Arguments& words = std::get<0>(parameters.param);
      return words[1] + (words.back() == "5" ? "_rounds" : "") + "_worker" +
             std::to_string(std::get<1>(parameters.param));
    });

class ASynchronousWorker : public testing::TestWithParam<const char*> {};

TEST_P(ASynchronousWorker, ThatIsKilledIsNamedByAllOthersWithinFiveSeconds) {
  const TemporaryFolder scratch;
  RunningProgram job(syncopate_command(
      launch(4, 2, 0) + as_words("--consistency sync --transport", GetParam(),
                                 "--epochs 100000 --service-time constant:5 --metrics",
                                 scratch / "m.jsonl")));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", kStep, 20));
  const auto victim = process_of(job.pid(), {"worker", 1});
  ASSERT_TRUE(victim);
  const EndTimer since_death;
  ASSERT_EQ(kill(*victim, SIGKILL), 0);
  const ProgramResult result = job.wait();
  expect_ended_in_time(since_death);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  for (const char* task : {"worker 0", "worker 2", "worker 3", "server 0", "server 1"}) {
    EXPECT_TRUE(contains(result.err, "[" + std::string(task) + "] syncopate: worker 1 (host "));
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ASynchronousWorker, testing::Values("auto", "tcp", "shm"));

// Workers wait up to a minute for a lost server; in this test it is never started again.
TEST(AServerThatIsNotRestarted, EndsTheJobBeforeAnyTaskIsKilled) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  RunningProgram job(syncopate_command(
      launch(2, 2, 1) + as_words("--epochs 100000 --service-time constant:5 --metrics", metrics,
                                 "--checkpoint-dir", scratch / "ck", "--snapshot-every 0.2")));
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, 20));
  const auto first = process_of(job.pid(), {"server", 1});
  ASSERT_TRUE(first);
  ASSERT_EQ(kill(*first, SIGKILL), 0);
  const auto is_restarted = [&] {
    const auto now = process_of(job.pid(), {"server", 1});
    return now && *now != *first;
  };
  ASSERT_TRUE(job.wait_until(metrics.parent_path(), is_restarted));
  ASSERT_EQ(kill(*process_of(job.pid(), {"server", 1}), SIGKILL), 0);
  const EndTimer since_loss;
  const ProgramResult result = job.wait();
  EXPECT_LT(since_loss.seconds(), 30.0) << "half of a worker's wait\n" << result.err;
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "has no restart left"));
  EXPECT_FALSE(contains(result.err, "SIGKILL to"));
}

TEST(AServerThatIsStopped, EndsTheJobWithALineThatNamesIt) {
  const TemporaryFolder scratch;
  RunningProgram job(syncopate_command(
      launch(2, 2, 0) +
      as_words("--epochs 100000 --service-time constant:5 --metrics", scratch / "m.jsonl")));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", kStep, 20));
  const auto victim = process_of(job.pid(), {"server", 1});
  ASSERT_TRUE(victim);
  ASSERT_EQ(kill(*victim, SIGSTOP), 0);
  const ProgramResult result = job.wait();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  for (const char* worker : {"[worker 0] ", "[worker 1] "}) {
    EXPECT_TRUE(contains(result.err, std::string(worker) + "syncopate: server 1 (host "));
  }
}

}  // namespace
}  // namespace syncopate::test
