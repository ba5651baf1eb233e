// Tests that only one run at a time uses a folder given as --checkpoint-dir.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments endless(const TemporaryFolder& scratch, const Arguments& more = {}) {
  return as_words(
             "train --model mlp --data synthetic:1x8x8:4:640 --threads 1 --epochs 100000 "
             "--eval-every 0 --resume --checkpoint-dir",
             scratch / "ck", "--no-progress") +
         more;
}

std::unique_ptr<RunningProgram> start(const Arguments& arguments) {
  return std::make_unique<RunningProgram>(syncopate_command(arguments));
}

void expect_refused(RunningProgram& run) {
  expect_failure(run.wait(), 2, {"another run is using this folder", "choose another folder"});
}

TEST(ARun, LocksItsCheckpointFolderAgainstRunsOfAnySize) {
  const TemporaryFolder scratch;
  const auto first = start(endless(
      scratch, as_words("--checkpoint-every 20 --log-every 1 --metrics", scratch / "m.jsonl")));
  ASSERT_TRUE(first->wait_until_file_has(scratch / "m.jsonl", "\"step\":30,"));
  // The other runs start at once, because each waits for a while for the first run to release the
  // folder.
  const auto alone = start(endless(scratch));
  const auto workers = start(Arguments{"launch", "--workers", "2", "--"} +
                             endless(scratch, {"--strategy", "multi-worker-mirrored"}));
  const auto served = start(as_words("launch --workers 2 --servers 2 --") +
                            endless(scratch, {"--strategy", "parameter-server"}));
  Arguments flags = endless(scratch);
  flags.front() = "doctor";
  const ProgramResult doctor = run_syncopate(flags);
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_TRUE(contains(doctor.out, "another run is using this folder"));
  for (const auto* other : {&alone, &workers, &served}) expect_refused(**other);
  first->send(SIGTERM);
  const ProgramResult result = first->wait();
  EXPECT_EQ(result.exit_code, 75) << "the first run continues until SIGTERM: " << result.err;
}

// The run writes one checkpoint, when it is stopped, so that none is written while the test removes
// the folder.
TEST(ARun, LocksItsFolderAgainWhenThatWasRemoved) {
  const TemporaryFolder scratch;
  const auto run =
      start(endless(scratch, as_words("--checkpoint-every 1000000000 --log-every 1 --metrics",
                                      scratch / "m.jsonl")));
  ASSERT_TRUE(run->wait_until_file_has(scratch / "m.jsonl", "\"step\":30,"));
  std::filesystem::remove_all(scratch / "ck");
  run->send(SIGTERM);
  const ProgramResult result = run->wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(contains(result.err,
                       ".lock was removed while this run used the folder; the folder is "
                       "locked again"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "ck/.lock"));
}

TEST(ARun, TakesTheFolderOfAKilledRun) {
  const TemporaryFolder scratch;
  const auto first = start(endless(
      scratch, as_words("--checkpoint-every 20 --log-every 1 --metrics", scratch / "m.jsonl")));
  ASSERT_TRUE(first->wait_until_file_has(scratch / "m.jsonl", "\"step\":30,"));
  const auto second = start(endless(scratch, {"--max-seconds", "0.1"}));
  ASSERT_TRUE(second->wait_until_err_has("waiting up to 10 s"));
  first->send(SIGKILL);
  const ProgramResult result = successful(second->wait());
  EXPECT_TRUE(contains(result.err, "resumed from"));
}

class AJobWithServers : public testing::TestWithParam<const char*> {};

TEST_P(AJobWithServers, KeepsItsFolderWhileATaskIsRestarted) {
  const TemporaryFolder scratch;
  const auto job =
      start(as_words("launch --workers 2 --servers 1 --restart 2 --") +
            endless(scratch, as_words("--strategy parameter-server --checkpoint-every 50 "
                                      "--snapshot-every 0.1 --log-every 1 --metrics",
                                      scratch / "m.jsonl")));
  ASSERT_TRUE(job->wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\"", 20));
  const auto killed = process_of(job->pid(), {GetParam(), 0});
  ASSERT_TRUE(killed);
  ASSERT_EQ(kill(*killed, SIGKILL), 0);
  const auto second = start(endless(scratch));
  ASSERT_TRUE(job->wait_until_err_has("restarting it (1 of 2)"));
  expect_refused(*second);
  job->send(SIGTERM);
  const ProgramResult result = job->wait();
  EXPECT_EQ(result.exit_code, 75) << "it is back: " << result.err;
}

INSTANTIATE_TEST_SUITE_P(Each, AJobWithServers, testing::Values("worker", "server"));

}  // namespace
}  // namespace syncopate::test
