// Tests that a worker that dies, stops or fails ends all other workers in time, with a line that
// names the failed worker, and that a restart resumes from the last checkpoint.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// Returns the flags of a small job that writes one line of metrics for each step.
Arguments small_job(const std::filesystem::path& metrics, const Arguments& more) {
  return as_words(
             "train --strategy multi-worker-mirrored --model mlp --data synthetic:1x28x28:10:2000 "
             "--threads 1 --batch-size 24 --log-every 1 --no-progress --metrics",
             metrics) +
         more;
}

Arguments endless(const TemporaryFolder& scratch, const Arguments& more = {}) {
  return small_job(scratch / "m.jsonl",
                   Arguments{"--epochs", "100000", "--eval-every", "0"} + more);
}

class AWorker : public testing::TestWithParam<WorkerFault> {};

TEST_P(AWorker, ThatFailsInTheMiddleOfAStepEndsAllOthersWithinFiveSeconds) {
  const TemporaryFolder scratch;
  fail_after_50_steps(Arguments{"launch", "--workers", "3", "--"} +
                          endless(scratch, {"--transport", GetParam().transport}),
                      scratch / "m.jsonl", GetParam());
}

INSTANTIATE_TEST_SUITE_P(Each, AWorker,
                         testing::Values(WorkerFault{"Killed0Shm", 0, SIGKILL, "shm"},
                                         WorkerFault{"Killed1Shm", 1, SIGKILL, "shm"},
                                         WorkerFault{"Killed2Shm", 2, SIGKILL, "shm"},
                                         WorkerFault{"Killed0Tcp", 0, SIGKILL, "tcp"},
                                         WorkerFault{"Killed1Tcp", 1, SIGKILL, "tcp"},
                                         WorkerFault{"Killed2Tcp", 2, SIGKILL, "tcp"},
                                         WorkerFault{"Stopped0Shm", 0, SIGSTOP, "shm"},
                                         WorkerFault{"Stopped2Shm", 2, SIGSTOP, "shm"},
                                         WorkerFault{"Stopped1Tcp", 1, SIGSTOP, "tcp"}),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

// Expects that launch sees the other workers end in time. A stopped worker cannot end by itself, so
// the total time of launch does not count.
void expect_others_end_in_time(const RunningProgram& launch, int failed,
                               const EndTimer& since_fault) {
  for (int i = 0; i < 3; ++i) {
    if (i == failed) continue;
    EXPECT_TRUE(
        launch.wait_until_err_has("launch: worker " + std::to_string(i) + " exited with 1"));
  }
  expect_ended_in_time(since_fault);
}

class AWorkerAtStartUp : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(AWorkerAtStartUp, ThatFailsAfterTheRendezvousEndsAllOthers) {
  const auto [failed, signal] = GetParam();
  const TemporaryFolder scratch;
  // The tasks generate the digits for a second or more after the rendezvous, so the kill precedes
  // the training.
  RunningProgram launch(syncopate_command(
      as_words("launch --workers 3 -- train --strategy multi-worker-mirrored --cache-dir",
               scratch / "cache", "--no-progress --threads 1 --epochs 1000")));
  const auto victim = worker_of(launch.pid(), failed);
  ASSERT_TRUE(victim);
  ASSERT_TRUE(launch.wait_until_err_has("3 tasks have met"));
  const EndTimer since_fault;
  ASSERT_EQ(kill(*victim, signal), 0);
  expect_others_end_in_time(launch, failed, since_fault);
  const ProgramResult result = launch.wait();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  expect_all_name(result, failed, 3);
}

INSTANTIATE_TEST_SUITE_P(Each, AWorkerAtStartUp,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values(SIGKILL, SIGSTOP)));

// A worker that a signal ends or stops before it has met the others.
struct AbsentWorker {
  const char* name;
  std::vector<std::string> flags;  // of launch
  std::vector<std::string> train;
  int index;
  const char* signal;
  const char* why;
};
void PrintTo(const AbsentWorker& worker, std::ostream* out) { *out << worker.name; }

class AWorkerThatNeverMeetsTheOthers : public testing::TestWithParam<AbsentWorker> {};

// The worker runs a script that gets the signal in place of the program, so that it cannot have met
// the others. They would wait for it for 600 s.
TEST_P(AWorkerThatNeverMeetsTheOthers, EndsThemAtOnceAndIsNamedInTheLastLine) {
  const AbsentWorker& row = GetParam();
  const TemporaryFolder scratch;
  const std::filesystem::path script = scratch / "script.sh";
  std::ofstream(script) << "#!/bin/sh\n[ $SYNCOPATE_INDEX = " << row.index << " ] && kill -"
                        << row.signal << " $$\nexec " << syncopate_command({})[0]
                        << " train \"$@\" --model mlp --data synthetic:1x28x28:10:2000\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const EndTimer since_start;
  const ProgramResult result =
      run_syncopate(Arguments{"launch"} + row.flags + Arguments{"--", script} + row.train +
                    as_words("--threads 1 --batch-size-per-replica 24 --epochs 100000 "
                             "--no-progress --rendezvous-timeout 600 --peer-timeout 2"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.err.ends_with("launch: the job failed because worker " +
                                   std::to_string(row.index) + " " + row.why +
                                   " before the tasks had met\n"))
      << result.err;
  EXPECT_FALSE(contains(result.err, "SIGTERM"));
  expect_ended_in_time(since_start);
}

const Arguments kMirrored{"--strategy", "multi-worker-mirrored"};
const Arguments kServers{"--strategy", "parameter-server"};
constexpr const char* kWasKilled = "was ended by signal 9 (SIGKILL)";
constexpr const char* kWasStopped = "was stopped (SIGSTOP) for 2 s";

INSTANTIATE_TEST_SUITE_P(
    Each, AWorkerThatNeverMeetsTheOthers,
    testing::Values(
        AbsentWorker{"Killed0", {"--workers", "3"}, kMirrored, 0, "KILL", kWasKilled},
        AbsentWorker{"Killed1", {"--workers", "3"}, kMirrored, 1, "KILL", kWasKilled},
        AbsentWorker{"Stopped0", {"--workers", "3"}, kMirrored, 0, "STOP", kWasStopped},
        AbsentWorker{"Stopped2", {"--workers", "3"}, kMirrored, 2, "STOP", kWasStopped},
        AbsentWorker{"PipelineKilled1",
                     {"--workers", "2"},
                     {"--strategy", "pipeline"},
                     1,
                     "KILL",
                     kWasKilled},
        AbsentWorker{
            "AsyncKilled0", {"--workers", "2", "--servers", "2"}, kServers, 0, "KILL", kWasKilled},
        AbsentWorker{"AsyncStopped1",
                     {"--workers", "2", "--servers", "1"},
                     kServers,
                     1,
                     "STOP",
                     kWasStopped},
        AbsentWorker{"SyncKilled1",
                     {"--workers", "2", "--servers", "1"},
                     kServers + Arguments{"--consistency", "sync"},
                     1,
                     "KILL",
                     kWasKilled}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(AChiefThatIsStoppedAmongItsCheckpoints, EndsAllOthers) {
  const TemporaryFolder scratch;
  RunningProgram launch(syncopate_command(
      Arguments{"launch", "--workers", "3", "--"} +
      endless(scratch, {"--checkpoint-dir", scratch / "ck", "--checkpoint-every", "1"})));
  const auto chief = worker_of(launch.pid(), 0);
  ASSERT_TRUE(chief);
  ASSERT_TRUE(launch.wait_until_file_has(scratch / "m.jsonl", "\"step\":30,"));
  const EndTimer since_fault;
  ASSERT_EQ(kill(*chief, SIGSTOP), 0);
  expect_others_end_in_time(launch, 0, since_fault);
  expect_all_name(launch.wait(), 0, 3);
}

class Restart : public testing::TestWithParam<int> {};

// Checkpoints are written at every step, so that the kill falls close to a write or into one.
TEST_P(Restart, ResumesTheLastCheckpointBitForBit) {
  const TemporaryFolder scratch;
  const auto run = [&](const std::string& name) {
    return small_job(scratch / (name + ".jsonl"),
                     as_words("--steps 400 --checkpoint-every 1 --checkpoint-dir", scratch / name));
  };
  RunningProgram launch(
      syncopate_command(as_words("launch --workers 3 --restart 1 --") + run("killed")));
  const auto victim = worker_of(launch.pid(), GetParam());
  ASSERT_TRUE(victim);
  ASSERT_TRUE(launch.wait_until_file_has(scratch / "killed.jsonl", "\"step\":60,"));
  ASSERT_EQ(kill(*victim, SIGKILL), 0);
  const ProgramResult result = successful(launch.wait());
  EXPECT_TRUE(contains(result.err, "resumed from"));

  const ProgramResult whole =
      successful(run_syncopate(Arguments{"launch", "--workers", "3", "--"} + run("whole")));
  EXPECT_EQ(summary_of(scratch / "killed.jsonl").at("weights_hash"),
            summary_of(scratch / "whole.jsonl").at("weights_hash"));
  EXPECT_EQ(summary_of(scratch / "killed.jsonl").at("steps"), 400);
}

INSTANTIATE_TEST_SUITE_P(EachWorker, Restart, testing::Values(0, 1, 2));

TEST(AChiefThatCannotWriteItsCheckpoint, EndsAllOthersWithItsReason) {
  const TemporaryFolder scratch;
  RunningProgram launch(syncopate_command(
      Arguments{"launch", "--workers", "2", "--"} +
      endless(scratch, {"--checkpoint-dir", "/proc", "--checkpoint-every", "5"})));
  expect_failure(launch.wait(), 1, {"[worker 1] syncopate: rank 0 (host ", "/proc"});
}

TEST(ARequestToStop, ThatReachesOneWorkerStopsAllAfterACheckpoint) {
  const TemporaryFolder scratch;
  RunningProgram launch(syncopate_command(Arguments{"launch", "--workers", "3", "--"} +
                                          endless(scratch, {"--checkpoint-dir", scratch / "ck"})));
  const auto asked = worker_of(launch.pid(), 1);
  ASSERT_TRUE(asked);
  ASSERT_TRUE(launch.wait_until_file_has(scratch / "m.jsonl", "\"step\":50,"));
  ASSERT_EQ(kill(*asked, SIGUSR1), 0);
  const ProgramResult result = launch.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(contains(result.err, "stopped by SIGUSR1"));
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

// `sleep` stands in for a rank that is stopped before MPI has started: it never calls MPI_Init.
TEST(ARankThatNeverStartsMpi, EndsTheOthersAtTheRendezvousTimeout) {
  if (!std::filesystem::exists("/usr/bin/mpirun")) GTEST_SKIP() << "no mpirun on this machine";
  const TemporaryFolder scratch;
  const ProgramResult result =
      run_program(as_words("/usr/bin/env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                           "/usr/bin/mpirun --oversubscribe -n 1",
                           SYNCOPATE_PROGRAM) +
                  small_job(scratch / "m.jsonl",
                            as_words("--collective mpi --steps 2 --rendezvous-timeout 2")) +
                  Arguments{":", "-n", "1", "/bin/sleep", "3600"});
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(
      contains(result.err, "syncopate: rank 0 of 2: MPI_Init_thread did not return within 2 s"));
}

}  // namespace
}  // namespace syncopate::test
