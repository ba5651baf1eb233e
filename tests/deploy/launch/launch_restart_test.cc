// Tests roles that are started again while the other roles continue, and the events that end a job
// with servers.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "deploy/launch/role_commands.h"
#include "tests/deploy/launch/launch_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

// Returns shell text that runs the command once per job: only the first process that executes the
// text runs the command, and its restarts do not.
std::string at_first(const std::string& command) {
  return "if mkdir $FOLDER/first 2>/dev/null; then " + command + "; fi; ";
}

constexpr std::chrono::seconds kForever{60};

// The fixture launches jobs by the rules for asynchronous workers, which do not wait for each
// other.
class AsynchronousLaunch : public testing::Test {
 protected:
  AsynchronousLaunch() {
    job_.rules.workers = {.on_failure = FailureRule::kContinue,
                          .restarts_alone = true,
                          .others_detect_failure = false};
    job_.rules.servers = {.restarts_alone = true};
    job_.rules.most_restarts = 2;
  }

  // Runs `act` once, when launch prints a line that contains `text`.
  void on_output(const std::string& text, const std::function<void()>& act) {
    job_.on_err = [=, done = false](const std::string& lines) mutable {
      if (done || !contains(lines, text)) return;
      done = true;
      act();
    };
  }
  // Opens a named pipe of the job's folder for writing, on which a role that reads the pipe
  // continues.
  void open_pipe(const std::string& name) const {
    const std::ofstream opened(job_.folder() / name);
  }

  LaunchCase job_;
};

TEST_F(AsynchronousLaunch, RestartsAWorkerWhileTheOthersContinue) {
  const Launched result = job_.run_job(
      {at_first("kill -KILL $$") + "echo again; : >$FOLDER/pipe", "echo started; : <$FOLDER/pipe"},
      {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err,
            "launch: worker 0 was ended by signal 9 (SIGKILL); restarting it (1 of 2)\n");
  EXPECT_TRUE(contains(result.out, "[worker 0] again\n"));
  EXPECT_EQ(count_lines(result.out), 2) << result.out;
}

TEST_F(AsynchronousLaunch, RestartsARoleUnderItsOldIdentity) {
  int plans = 0;
  const Launched result = job_.run_plan([&](int) {
    ++plans;
    const std::string script = "echo $SYNCOPATE_ROLE $SYNCOPATE_INDEX $SYNCOPATE_NONCE $*; ";
    return make_local_roles({.arguments = {"/bin/sh", "-c", script + at_first("exit 1"), "sh", "a"},
                             .environment = job_.environment()});
  });
  EXPECT_EQ(plans, 1);
  ASSERT_EQ(count_lines(result.out), 2) << result.out;
  const std::string line = result.out.substr(0, result.out.find('\n') + 1);
  EXPECT_EQ(result.out, line + line);
  EXPECT_TRUE(contains(line, "[worker 0] worker 0 "));
}

TEST_F(AsynchronousLaunch, ContinuesWithoutAWorkerThatHasNoRestartLeft) {
  on_output("launch: worker 0 exited with 1 and has no restart left\n", [&] { open_pipe("pipe"); });
  const Launched result =
      job_.run_job({"echo started; exit 1", ": <$FOLDER/pipe; echo went on"}, {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "[worker 1] went on\n"));
  EXPECT_EQ(count_lines(result.out), 4) << result.out;
  EXPECT_TRUE(contains(result.err, "restarting it (2 of 2)\n"));
}

TEST_F(AsynchronousLaunch, EndsTheServersWhenNoWorkerIsLeft) {
  const Launched result = job_.run_job({"exit 1"}, {"echo started; " + wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err,
                       "SIGTERM to server 0: it still ran 1 s after the last worker had ended"));
  EXPECT_EQ(result.out, "[server 0] started\n") << "nor is anything started again then";
}

TEST_F(AsynchronousLaunch, LetsServersEndByThemselvesAfterTheLastWorker) {
  job_.rules.timeout = kForever;
  const Launched result = job_.run_job({"exec 3>$FOLDER/pipe"}, {"cat <$FOLDER/pipe"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

// The server is killed after the last worker has ended, so the restarted server has no job to
// serve.
TEST_F(AsynchronousLaunch, AcceptsAServerStoppedByRequestWhenAllWorkersHaveSucceeded) {
  job_.rules.grace = kForever;
  const std::string asked = "trap 'exit 1' TERM; echo started; " + wait_for_a_signal();
  const Launched result = job_.run_job({"true"}, {asked});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(
      contains(result.err, "launch: server 0 did not receive the message that the job was over\n"));
  EXPECT_EQ(job_.run_job({"exit 1"}, {asked}).exit_code, 1);
}

TEST_F(AsynchronousLaunch, AcceptsAServerEndedByTheStopSignalWhenAllWorkersHaveSucceeded) {
  job_.rules.grace = kForever;
  const Launched result = job_.run_job({"true"}, {wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(AsynchronousLaunch, CountsAServerThatCrashesAtARequestToStop) {
  job_.rules.grace = kForever;
  for (const std::string end : {"kill -SEGV $$", "kill -ABRT $$", "exit 3"}) {
    // The worker ends as soon as the server has set its trap for SIGTERM.
    const Launched result = job_.run_job(
        {": <$FOLDER/pipe"},
        {"ulimit -c 0; trap '" + end + "' TERM; : >$FOLDER/pipe; " + wait_for_a_signal()});
    EXPECT_EQ(result.exit_code, 1) << end;
    EXPECT_TRUE(contains(result.err, "SIGTERM to server 0"));
    EXPECT_FALSE(contains(result.err, "did not receive"));
  }
}

TEST_F(AsynchronousLaunch, AcceptsAServerKilledShortlyBeforeAllWorkersSucceed) {
  job_.rules.first_back_off = job_.rules.longest_back_off = kForever;
  ASSERT_EQ(mkfifo((job_.folder() / "go").c_str(), 0600), 0);
  on_output("restarting it", [&] { open_pipe("go"); });
  const Launched result = job_.run_job({": <$FOLDER/go"}, {"kill -KILL $$"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "launch: server 0 is not restarted: the job is ending\n"));
}

TEST_F(AsynchronousLaunch, CountsAServerThatFailsByItself) {
  job_.rules.most_restarts = 0;
  const Launched result = job_.run_job({"true"}, {"exit 1"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
}

TEST_F(AsynchronousLaunch, RestartsAServerWhileTheWorkersContinue) {
  const Launched result = job_.run_job({"echo started; : <$FOLDER/pipe"},
                                       {at_first("kill -KILL $$") + ": >$FOLDER/pipe"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "[worker 0] started\n");
  EXPECT_EQ(result.err,
            "launch: server 0 was ended by signal 9 (SIGKILL); restarting it (1 of 2)\n");
}

// Returns shell text that stops the role's process, as SIGSTOP from outside would.
std::string stop() { return "kill -STOP $$"; }

TEST_F(AsynchronousLaunch, RestartsAServerThatStaysStopped) {
  job_.rules.stopped_timeout = std::chrono::milliseconds(100);
  const Launched result =
      job_.run_job({"echo started; : <$FOLDER/pipe"}, {at_first(stop()) + ": >$FOLDER/pipe"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "[worker 0] started\n") << "the worker's restarts are not used up";
  EXPECT_EQ(result.err,
            "launch: SIGKILL to server 0: it has been stopped for 1 s, and the others have given "
            "it up\n"
            "launch: server 0 was ended by signal 9 (SIGKILL); restarting it (1 of 2)\n");
}

TEST_F(AsynchronousLaunch, RestartsAWorkerThatStaysStopped) {
  job_.rules.stopped_timeout = std::chrono::milliseconds(100);
  const Launched result =
      job_.run_job({at_first(stop()) + "echo again; : >$FOLDER/pipe", ": <$FOLDER/pipe"}, {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "[worker 0] again\n") << result.err;
}

TEST_F(AsynchronousLaunch, LetsAStoppedRoleContinueInTime) {
  job_.rules.stopped_timeout = kForever;
  const Launched result = job_.run_job({"echo $$ >$FOLDER/pid; " + stop() + "; echo continued",
                                        kUntilItIsStopped + "kill -CONT $(cat $FOLDER/pid)"},
                                       {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "[worker 0] continued\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(AsynchronousLaunch, EndsWithAStoppedServerThatHasNoRestartLeft) {
  job_.rules.stopped_timeout = std::chrono::milliseconds(100);
  const Launched result = job_.run_job({wait_for_a_signal()}, {stop()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err,
                       "server 0 was ended by signal 9 (SIGKILL) and has no restart "
                       "left\n",
                       "SIGTERM to worker 0"));
}

TEST_F(AsynchronousLaunch, EndsWithAServerThatHasNoRestartLeft) {
  const Launched result =
      job_.run_job({"echo started; " + wait_for_a_signal()}, {"echo started; exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(
      contains(result.err, "SIGTERM to worker 0: it still ran 1 s after another had failed"));
  EXPECT_EQ(count_lines(result.out), 4) << result.out;
}

TEST_F(AsynchronousLaunch, EndsWithAServerThatCannotBeRestarted) {
  job_.rules.servers.restarts_alone = false;
  job_.rules.restarts_together = false;
  const Launched result =
      job_.run_job({"echo started; " + wait_for_a_signal()}, {"echo started; exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "SIGTERM to worker 0"));
  EXPECT_EQ(count_lines(result.out), 2) << result.out;
}

TEST_F(AsynchronousLaunch, CountsTheExitCodeOfTheLastIncarnation) {
  EXPECT_EQ(job_.run_job({at_first("exit 1") + "exit 75"}, {}).exit_code, 75);
}

TEST_F(AsynchronousLaunch, DoesNotRepeatWrongUsageOrAStopOnRequest) {
  for (const int code : {2, 75}) {
    const Launched result = job_.run_job({"echo started; exit " + std::to_string(code)}, {});
    EXPECT_EQ(result.exit_code, code);
    EXPECT_EQ(count_lines(result.out), 1) << result.out;
  }
}

TEST_F(AsynchronousLaunch, RestartsNoRoleThatEndsAfterTheSignalToStop) {
  const Launched result = job_.run_job(
      {"echo started; trap 'exit 1' TERM; kill -TERM $PPID; " + wait_for_a_signal()}, {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 1) << result.out;
  EXPECT_EQ(result.err, "launch: worker 0 exited with 1\n");
}

TEST_F(AsynchronousLaunch, EndsAStoppedWorkerThatCannotReceiveTheSignal) {
  job_.rules.timeout = kForever;
  const Launched result = job_.run_job(
      {"trap '' INT; echo $$ >$FOLDER/pid; kill -STOP $$; echo continued"},
      {"trap 'exit 75' INT; " + kUntilItIsStopped + "kill -INT $PPID; " + wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_EQ(result.out, "[worker 0] continued\n") << result.err;
}

TEST_F(AsynchronousLaunch, CancelsAWaitingRestartAtARequestToStop) {
  job_.rules.first_back_off = job_.rules.longest_back_off = kForever;
  job_.rules.timeout = kForever;
  on_output("worker 0 exited with 1; restarting it (1 of 2)", [] { kill(getpid(), SIGTERM); });
  // Worker 0 fails as soon as worker 1 has set its trap for SIGTERM.
  const Launched result =
      job_.run_job({"echo started; : <$FOLDER/pipe; exit 1",
                    "trap 'exit 75' TERM; : >$FOLDER/pipe; " + wait_for_a_signal()},
                   {});
  EXPECT_EQ(result.exit_code, 1) << "as it last ended";
  EXPECT_TRUE(contains(result.err, "launch: worker 1 exited with 75\n",
                       "launch: worker 0 is not restarted: the job is ending\n"));
  EXPECT_EQ(count_lines(result.out), 1) << result.out;
}

TEST(ALaunchThatPausesBeforeACommonRestart, ReceivesSignals) {
  LaunchCase job;
  job.rules.most_restarts = 1;
  job.rules.pause_before_all = kForever;
  job.on_err = [](const std::string& lines) {
    if (contains(lines, "launch: restart 1 of 1")) kill(getpid(), SIGTERM);
  };
  const Launched result = job.run({"echo started; exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 1) << result.out;
}

TEST_F(AsynchronousLaunch, CancelsAWaitingRestartWhenTheJobIsDone) {
  job_.rules.first_back_off = job_.rules.longest_back_off = kForever;
  job_.rules.timeout = kForever;
  ASSERT_EQ(mkfifo((job_.folder() / "go").c_str(), 0600), 0);
  on_output("worker 0 exited with 1; restarting it", [&] { open_pipe("go"); });
  // The server ends after worker 1 has ended.
  const Launched result = job_.run_job(
      {"echo started; exit 1", "exec 3>$FOLDER/pipe; : <$FOLDER/go"}, {"cat <$FOLDER/pipe"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 1) << result.out;
  EXPECT_FALSE(contains(result.err, "launch: restart "));
}

TEST_F(AsynchronousLaunch, WaitsNoLongerThanTheLongestBackOff) {
  job_.rules.most_restarts = 40;  // the unlimited last delay would be 2^39 ms, or 17 years
  const Launched result = job_.run_job({"exit 1"}, {});
  EXPECT_TRUE(contains(result.err, "restarting it (40 of 40)"));
}

TEST_F(AsynchronousLaunch, ContinuesWithoutAWorkerThatCannotBeRestarted) {
  const std::filesystem::path program = job_.folder() / "program";
  std::ofstream(program) << "#!/bin/sh\nrm $0\nexit 1\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  on_output("and has no restart left; the job goes on", [&] { open_pipe("pipe"); });
  const Launched result = job_.run_plan([&](int) {
    RoleCommand first = job_.role(Role::kWorker, 0, "");
    first.arguments = {program.string()};
    return commands_of(std::move(first),
                       job_.role(Role::kWorker, 1, ": <$FOLDER/pipe; echo went on"));
  });
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "[worker 1] went on\n");
  EXPECT_TRUE(contains(result.err, program.string() + ": No such file"));
}

TEST_F(AsynchronousLaunch, SaysThatTheJobGoesOnWithoutAWorkerAndWhyItEndsWith1) {
  job_.rules.most_restarts = 0;
  on_output("the job goes on", [&] { open_pipe("pipe"); });
  const Launched result = job_.run_job({"kill -KILL $$", ": <$FOLDER/pipe"}, {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(
      result.err,
      "launch: worker 0 was ended by signal 9 (SIGKILL); the job goes on with 1 worker, which "
      "also trains its batches\n"
      "launch: the other workers have completed the job; the exit code is 1 because worker 0 "
      "was ended by signal 9 (SIGKILL)\n");
}

// The worker that ends the job takes longer to end than the one that it has told.
TEST_F(AsynchronousLaunch, ClaimsNothingOfAJobThatAWorkerMayHaveEnded) {
  job_.rules.most_restarts = 0;
  on_output("launch: worker 1 exited with 1", [&] { open_pipe("pipe"); });
  const Launched result = job_.run_job({": <$FOLDER/pipe; exit 1", "exit 1"}, {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "launch: worker 1 exited with 1\n"
            "launch: worker 0 exited with 1\n"
            "launch: the job failed: worker 1 exited with 1; it was the first role to end with an "
            "error\n");
}

// The job has synchronous workers, and its servers write snapshots.
TEST(SynchronousLaunch, EndsWithAWorkerAndStartsAllAgain) {
  LaunchCase job;
  job.rules.servers.restarts_alone = true;
  job.rules.most_restarts = 1;
  const Launched result = job.run_job({"echo started; " + at_first("exit 1") + ": >$FOLDER/pipe"},
                                      {"echo started; : <$FOLDER/pipe"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_lines(result.out), 4) << result.out;
  EXPECT_TRUE(contains(result.err, "launch: restart 1 of 1\n"));
}

TEST(SynchronousLaunch, StartsNoRoleMoreOftenThanAllowedAloneOrWithTheOthers) {
  LaunchCase job;
  job.rules.servers.restarts_alone = true;
  job.rules.most_restarts = 1;
  // The server fails once and is restarted alone; then the worker fails, and all roles are
  // restarted.
  const Launched result = job.run_job(
      {"echo started; : <$FOLDER/pipe; exit 1"},
      {"echo started; " + at_first("exit 1") + ": >$FOLDER/pipe; " + wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 3) << result.out;
  EXPECT_FALSE(contains(result.err, "launch: restart "));
}

}  // namespace
}  // namespace syncopate::test
