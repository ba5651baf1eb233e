// Tests `syncopate doctor`, alone and as the tasks of a job.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

const Arguments kSmall = as_words("--model mlp --data synthetic:1x8x8:4:640 --threads 1");

TEST(Doctor, AcceptsThisMachine) {
  const ProgramResult result = successful(run_syncopate(Arguments{"doctor"} + kSmall));
  EXPECT_FALSE(contains(result.out, "ERROR"));
  EXPECT_TRUE(contains(result.out, "1 task on 1 machine"));
}

TEST(Doctor, ContactsWorkersAndLeavesNoFiles) {
  const TemporaryFolder scratch;
  const ProgramResult result = successful(
      run_syncopate(as_words("launch --workers 2 -- doctor --strategy multi-worker-mirrored "
                             "--batch-size 65 --checkpoint-dir",
                             scratch / "ck") +
                    kSmall));
  EXPECT_TRUE(contains(result.out, "2 tasks on 1 machine met",
                       "does not exist; train will create it where all tasks see it",
                       "65 does not divide by 2"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "ck"));
}

TEST(Doctor, CreatesNoFolder) {
  const TemporaryFolder scratch;
  successful(
      run_syncopate(Arguments{"doctor", "--checkpoint-dir", scratch / "absent/below"} + kSmall));
  EXPECT_FALSE(std::filesystem::exists(scratch / "absent"));
}

TEST(Doctor, CreatesNoFolderForDrawnData) {
  const TemporaryFolder scratch;
  successful(run_syncopate({"doctor", "--data", "digits", "--cache-dir", scratch / "absent"}));
  EXPECT_FALSE(std::filesystem::exists(scratch / "absent"));
}

TEST(Doctor, CutsTheNetworkOfAPipeline) {
  const Arguments pipeline{"doctor", "--strategy", "pipeline", "--share-devices"};
  const ProgramResult fits = run_syncopate(pipeline + kSmall);
  EXPECT_EQ(fits.exit_code, 0) << fits.out;
  const ProgramResult nope = run_syncopate(pipeline + Arguments{"--cut", "nope"} + kSmall);
  EXPECT_EQ(nope.exit_code, 1);
  EXPECT_TRUE(contains(nope.out, "--cut nope: network mlp cannot be cut there"));
  const ProgramResult many =
      run_syncopate(Arguments{"launch", "--workers", "3", "--"} + pipeline + kSmall);
  EXPECT_EQ(many.exit_code, 1);
  EXPECT_TRUE(contains(many.out,
                       "3 tasks: network mlp cannot be cut into 3 stages with parameters; it "
                       "gives at most 2"));
}

TEST(Doctor, FindsFlagsInWhichTasksDiffer) {
  const Port port(false);
  const auto start = [&](int rank, const Arguments& flags) {
    return std::make_unique<RunningProgram>(
        syncopate_command(as_words("doctor --strategy multi-worker-mirrored --world-size 2 --rank",
                                   std::to_string(rank), "--rendezvous", port.endpoint()) +
                          kSmall + flags));
  };
  const auto first = start(0, {"--seed", "1"});
  const auto second = start(1, {"--seed", "2", "--model", "mnist-cnn"});
  const ProgramResult result = first->wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "ERROR    flags          worker 1 (host ",
                       " has --seed 2, worker 0 (host ",
                       " has --model mnist-cnn, worker 0 (host "));
  EXPECT_EQ(second->wait().exit_code, 1);
}

TEST(Doctor, NamesAServerThatWaitsForWorkersAndLeavesItAlone) {
  const Port port(false);
  const Arguments meet{"--servers", "1", "--nonce", "a secret", "--rendezvous", port.endpoint()};
  const Arguments job =
      as_words("--strategy parameter-server --rank 0 --world-size 1 --steps 5") + kSmall + meet;
  RunningProgram server(
      syncopate_command(Arguments{"serve", "--index", "0", "--workers", "1"} + meet));
  ASSERT_TRUE(server.wait_until_err_has("listening at"));
  const ProgramResult result = run_syncopate(Arguments{"doctor"} + job);
  expect_failure(result, 1, {"it is a parameter server", "doctor in place of serve"});
  EXPECT_FALSE(contains(result.out, "ERROR"));
  successful(run_syncopate(Arguments{"train", "--no-progress"} + job));
  const ProgramResult served = successful(server.wait());
  EXPECT_FALSE(contains(served.err, "warning"));
}

TEST(Doctor, ContactsServersToo) {
  const ProgramResult result = successful(run_syncopate(
      as_words("launch --workers 2 --servers 2 -- doctor --strategy parameter-server") + kSmall));
  EXPECT_TRUE(contains(result.out, "4 tasks on 1 machine met"));
}

TEST(Doctor, FindsDataThatOneTaskCannotRead) {
  const Port port(false);
  const auto start = [&](int rank, const std::string& data) {
    return std::make_unique<RunningProgram>(syncopate_command(
        as_words("doctor --strategy multi-worker-mirrored --world-size 2 --rank",
                 std::to_string(rank), "--rendezvous", port.endpoint(), "--data", data)));
  };
  const auto first = start(0, "synthetic:1x8x8:4:640");
  const auto second = start(1, "mnist:/nowhere");
  const ProgramResult result = first->wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "ERROR    data", "worker 1"));
  EXPECT_EQ(second->wait().exit_code, 1);
}

// Doctor must find what train would refuse at once, and report it in train's words.
TEST(Doctor, FindsWhatTrainWouldRefuse) {
  const TemporaryFolder scratch;
  successful(run_syncopate(
      as_words("train --steps 2 --no-progress --checkpoint-dir", scratch / "ck") + kSmall));
  const Arguments in_folder = kSmall + Arguments{"--checkpoint-dir", scratch / "ck"};
  const std::vector<Arguments> refused = {
      {"--model", "mnist-cnn", "--data", "synthetic:1x1x1:4:10"},
      {"--batch-size", "1000", "--data", "synthetic:1x28x28:4:10"},
      in_folder,
      in_folder + Arguments{"--resume", "--seed", "2"},
      in_folder + Arguments{"--resume", "--optimizer", "sgd"},
      kSmall + Arguments{"--metrics", scratch / "absent/m.jsonl"},
      kSmall + Arguments{"--metrics", scratch / "."},
      kSmall + Arguments{"--trace", scratch / "absent/t.json"},
      kSmall + Arguments{"--trace", scratch / "."},
      kSmall + Arguments{"--init-from", scratch / "absent"}};
  for (const Arguments& flags : refused) {
    const ProgramResult train = run_syncopate(Arguments{"train", "--no-progress"} + flags);
    const ProgramResult doctor = run_syncopate(Arguments{"doctor"} + flags);
    EXPECT_NE(train.exit_code, 0) << train.out;
    EXPECT_EQ(doctor.exit_code, 1) << doctor.out;
    // The error message of train follows the prefix "syncopate: ".
    const std::string line = train.err.substr(11, train.err.find('\n') - 11);
    EXPECT_TRUE(contains(doctor.out, line)) << "'" << line << "' is not in: " << doctor.out;
  }
  const ProgramResult good = run_syncopate(Arguments{"doctor"} + in_folder +
                                           Arguments{"--resume", "--metrics", scratch / "m.jsonl"});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_FALSE(std::filesystem::exists(scratch / "m.jsonl"));
}

TEST(Doctor, FindsATraceAndCurvesThatCannotBeWritten) {
  const TemporaryFolder scratch;
  const auto doctor = [&](const Arguments& flags) {
    return run_syncopate(Arguments{"doctor"} + kSmall + flags);
  };
  const std::string file = scratch / "file";
  std::ofstream(file) << "an old trace";
  EXPECT_TRUE(contains(doctor({"--tensorboard", "/proc/none"}).out,
                       "(for --tensorboard /proc/none); give a folder"));
  const ProgramResult refused = doctor({"--tensorboard", file + "/tb"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(contains(refused.out, "--tensorboard " + file + "/tb: " + file + " is not a folder"));
  const ProgramResult good = doctor(as_words("--tensorboard", scratch / "tb", "--trace", file,
                                             "--checkpoint-dir", scratch / "."));
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_EQ(read_text(file), "an old trace");
  EXPECT_EQ(names_in(scratch / "."), Arguments{"file"});
  EXPECT_EQ(doctor({"--trace", scratch / "t.json"}).exit_code, 0);
  EXPECT_EQ(names_in(scratch / "."), Arguments{"file"});
}

TEST(Doctor, NamesTheTaskThatCannotBeReached) {
  const Port unused_port(false);
  const ProgramResult result = run_syncopate(
      as_words("doctor --strategy multi-worker-mirrored --world-size 2 --rank 1 --rendezvous",
               unused_port.endpoint(), "--rendezvous-timeout 1") +
      kSmall);
  expect_failure(result, 1, {unused_port.endpoint()});
  EXPECT_FALSE(contains(result.out, "ERROR"));
}

TEST(Doctor, StatesThatABatchScriptIsNoStep) {
  setenv("SLURM_JOB_ID", "7", 1);
  setenv("SLURM_NTASKS", "4", 1);
  setenv("SLURM_PROCID", "0", 1);
  const ProgramResult result =
      run_syncopate(Arguments{"doctor", "--strategy", "multi-worker-mirrored"} + kSmall);
  for (const char* name : {"SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID"}) unsetenv(name);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "srun"));
}

}  // namespace
}  // namespace syncopate::test
