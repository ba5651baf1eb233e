// Tests that launch starts processes together, watches them, asks them to stop and restarts them.
#include "deploy/launch/launched_job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "models/base/errors.h"
#include "tests/deploy/launch/launch_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/run/exit_codes.h"

namespace syncopate::test {
namespace {

TEST(Launch, PutsTheRoleInFrontOfEveryLineAndKeepsTheStreamsApart) {
  const Launched result = LaunchCase().run({"echo result; echo note >&2; printf 'no end'"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "[role 0] result\n[role 0] no end\n");
  EXPECT_EQ(result.err, "[role 0] note\n") << "a good end is not worth a line";
}

TEST(Launch, NeverMixesTheLinesOfTwoRoles) {
  const std::string script = "i=0; while [ $i -lt 500 ]; do printf one; echo two; i=$((i+1)); done";
  const Launched result = LaunchCase().run({script, script});
  EXPECT_EQ(count_lines(result.out), 1000);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line == "[role 0] onetwo" || line == "[role 1] onetwo") << line;
  }
}

TEST(Launch, TakesMoreOutputThanAPipeHolds) {
  const Launched result = LaunchCase().run({"head -c 3000000 /dev/zero | tr '\\0' '\\n'"});
  EXPECT_EQ(count_lines(result.out), 3'000'000);
}

TEST(Launch, GivesRolesAnEmptyStandardInput) {
  const LaunchCase job;
  std::ofstream(job.folder() / "typed") << "typed\n";
  const FileDescriptor ours(dup(STDIN_FILENO));
  const FileDescriptor typed(open((job.folder() / "typed").c_str(), O_RDONLY));
  dup2(typed.get(), STDIN_FILENO);
  const Launched result = job.run({"cat; echo end"});
  dup2(ours.get(), STDIN_FILENO);
  EXPECT_EQ(result.out, "[role 0] end\n");
}

TEST(Launch, DoesNotWaitForADescendantThatKeepsTheOutputOpen) {
  // The role's shell ends and leaves a background process, which reads the named pipe until this
  // test opens the pipe after launch has returned.
  const LaunchCase job;
  const Launched result =
      job.run({"{ timeout 20 sh -c ': <$FOLDER/pipe'; echo too late; } & echo started"});
  const std::ofstream met(job.folder() / "pipe");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "[role 0] started\n");
}

TEST(Launch, EndsWithTheWorstExitCode) {
  EXPECT_EQ(worse_exit_code(0, 75), 75);
  EXPECT_EQ(worse_exit_code(75, 1), 1);
  EXPECT_EQ(worse_exit_code(1, 2), 2);
  EXPECT_EQ(worse_exit_code(2, 75), 2);
  EXPECT_EQ(worse_exit_code(0, 139), 1) << "what is not ours is a failure";
  EXPECT_EQ(worse_exit_code(0, 0), 0);
  EXPECT_EQ(LaunchCase().run({"exit 75", "exit 0"}).exit_code, 75);
  EXPECT_EQ(LaunchCase().run({"exit 1", "exit 2", "exit 75"}).exit_code, 2);
}

TEST(Launch, PrintsTheLineAboutAWrongCommandLineLast) {
  LaunchCase job;
  const std::string text = "launch: worker 0 exited with 2\n";
  const Launched result = job.run_job({"echo 'syncopate: --batch-size is wrong' >&2; exit 2"},
                                      {"trap 'echo noise >&2' TERM; " + wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "--batch-size is wrong"));
  EXPECT_TRUE(result.err.ends_with(text)) << result.err;
  EXPECT_EQ(count_lines(result.err), 2) << result.err;
}

TEST(Launch, ReportsHowARoleEnded) {
  EXPECT_EQ(LaunchCase().run({"exit 3"}).err, "launch: role 0 exited with 3\n");
  const Launched killed = LaunchCase().run({"kill -KILL $$"});
  EXPECT_EQ(killed.err, "launch: role 0 was ended by signal 9 (SIGKILL)\n");
  EXPECT_EQ(killed.exit_code, 1);
}

TEST(Launch, NamesTheWantOfMemoryForWhichTheKernelEndedARole) {
  LaunchCase job;
  job.rules.system_root = job.folder();
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((job.folder() / file).parent_path());
    std::ofstream(job.folder() / file) << text;
  };
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "31457280\n");
  write("sys/fs/cgroup/job/memory.current", "1048576\n");
  write("sys/fs/cgroup/job/memory.events", "oom 4\noom_kill 4\n");
  const std::string ended = "launch: role 0 was ended by signal 9 (SIGKILL)";
  EXPECT_EQ(job.run({"kill -KILL $$"}).err, ended + "\n");
  const Launched killed =
      job.run({"echo oom_kill 5 >$FOLDER/sys/fs/cgroup/job/memory.events; kill -KILL $$"});
  EXPECT_EQ(killed.err,
            ended +
                ", probably by the kernel for want of memory (limit of the memory cgroup: 30 "
                "MiB); start fewer tasks, or take a smaller batch or network\n");
}

TEST(Launch, NamesAProgramThatCannotBeStarted) {
  const LaunchCase job;
  EXPECT_TRUE(contains(message_of<FileError>([&] {
                         job.run_plan([&](int) {
                           return commands_of(RoleCommand{.name = "role 0",
                                                          .arguments = {"/nonexistent/program"}});
                         });
                       }),
                       "/nonexistent/program: No such file"));
}

TEST(LaunchAfterAFailure, EndsTheOthersWithSigterm) {
  const Launched result = LaunchCase().run({wait_for_a_signal(), "exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "launch: role 1 exited with 1\n",
                       "launch: SIGTERM to role 0: it still ran 1 s after",
                       "role 0 was ended by signal 15 (SIGTERM)"));
}

TEST(LaunchAfterAFailure, LetsTheOthersEndByThemselvesFirst) {
  LaunchCase job(std::chrono::seconds(60));
  // Role 1 ends without receiving a signal, because its pipe closes when role 0 fails.
  const Launched result = job.run({"exec 3>$FOLDER/pipe; exit 1", "cat <$FOLDER/pipe; exit 1"});
  EXPECT_FALSE(contains(result.err, "SIGTERM"));
  EXPECT_EQ(count_lines(result.err), 3) << result.err;
}

TEST(LaunchAfterAFailure, NamesTheRoleThatASignalEndedAsTheCauseInTheLastLine) {
  LaunchCase job(std::chrono::seconds(60));
  const Launched result =
      job.run({"exec 3>$FOLDER/pipe; kill -KILL $$", "cat <$FOLDER/pipe; exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.err.ends_with(
      "launch: the job failed because role 0 was ended by signal 9 (SIGKILL)\n"))
      << result.err;
}

TEST(LaunchAfterAFailure, NamesAStoppedRoleAsTheCauseThoughAnotherFailedFirst) {
  LaunchCase job(std::chrono::seconds(60));
  const Launched result =
      job.run({"echo $$ >$FOLDER/pid; kill -STOP $$", kUntilItIsStopped + "exit 1"});
  EXPECT_TRUE(result.err.ends_with("launch: the job failed because role 0 was stopped (SIGSTOP)\n"))
      << result.err;
}

TEST(LaunchAfterAFailure, NamesTheFirstRoleThatExited) {
  LaunchCase job(std::chrono::seconds(60));
  const Launched result = job.run({"exec 3>$FOLDER/pipe; exit 3", "cat <$FOLDER/pipe; exit 1"});
  EXPECT_TRUE(result.err.ends_with(
      "launch: the job failed: role 0 exited with 3; it was the first role to end with an error\n"))
      << result.err;
}

// Returns shell text by which a role reports that all roles have met.
std::string report_meeting() {
  return "/bin/bash -c 'printf \"\\1\\0\\0\\0\\0\\0\\0\\0\" >&$SYNCOPATE_MET_FD'; ";
}

// Roles that report when they have met. Launch would wait a minute for a role that does not end.
class LaunchOfRolesThatMeet : public testing::Test {
 protected:
  LaunchOfRolesThatMeet() {
    job_.rules.roles_meet = true;
    job_.rules.timeout = job_.rules.grace = std::chrono::seconds(60);
  }
  LaunchCase job_;
};

TEST_F(LaunchOfRolesThatMeet, EndsTheOthersAtOnceWhenARoleIsKilledBefore) {
  const Launched result =
      job_.run({"trap 'echo noise' TERM; exec 3>$FOLDER/pipe; " + wait_for_a_signal(),
                ": <$FOLDER/pipe; kill -KILL $$"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(
      result.err,
      "launch: role 1 was ended by signal 9 (SIGKILL)\n"
      "launch: the job failed because role 1 was ended by signal 9 (SIGKILL) before the tasks "
      "had met\n");
}

TEST_F(LaunchOfRolesThatMeet, EndsTheOthersSoonWhenARoleExitsBefore) {
  const Launched result = job_.run({wait_for_a_signal(), "exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "launch: role 1 exited with 1\n"
            "launch: the job failed: role 1 exited with 1 before the tasks had met; it was the "
            "first role to end with an error\n");
}

TEST_F(LaunchOfRolesThatMeet, EndsThemEvenIfTheOthersCouldGoOnLater) {
  job_.rules.workers = {.on_failure = FailureRule::kContinue, .others_detect_failure = false};
  const Launched result = job_.run({wait_for_a_signal(), "kill -KILL $$"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "before the tasks had met\n"));
}

TEST_F(LaunchOfRolesThatMeet, DoesNotWaitForARoleThatIsStopped) {
  job_.rules.stopped_timeout = std::chrono::milliseconds(100);
  const Launched result = job_.run({wait_for_a_signal(), "kill -STOP $$"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "launch: SIGKILL to role 1: it has been stopped for 1 s, and the others wait for it\n"
            "launch: role 1 was ended by signal 9 (SIGKILL)\n"
            "launch: the job failed because role 1 was stopped (SIGSTOP) for 1 s before the tasks "
            "had met\n");
}

TEST_F(LaunchOfRolesThatMeet, StartsAllAgainIfRestartsAreLeft) {
  job_.rules.most_restarts = 1;
  const Launched result = job_.run(
      {"mkdir $FOLDER/first 2>/dev/null && kill -KILL $$; : >$FOLDER/pipe", ": <$FOLDER/pipe"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err,
            "launch: role 0 was ended by signal 9 (SIGKILL)\n"
            "launch: restart 1 of 1\n");
}

TEST_F(LaunchOfRolesThatMeet, LetsTheOthersEndByThemselvesAfterwards) {
  const Launched result = job_.run({report_meeting() + "exec 3>$FOLDER/pipe; kill -KILL $$",
                                    "cat <$FOLDER/pipe; echo ended by itself; exit 1"});
  EXPECT_EQ(result.out, "[role 1] ended by itself\n") << result.err;
  EXPECT_TRUE(result.err.ends_with(
      "launch: the job failed because role 0 was ended by signal 9 (SIGKILL)\n"))
      << result.err;
}

TEST(LaunchAfterAFailure, StopsRolesThatDoNotWaitForTheFailedOneAtOnce) {
  LaunchCase job(std::chrono::seconds(60));
  job.rules.workers.others_detect_failure = false;
  job.rules.grace = std::chrono::seconds(60);
  const Launched result =
      job.run({"exec 3>$FOLDER/pipe; exit 1",
               "trap 'exit 75' TERM; cat <$FOLDER/pipe; " + wait_for_a_signal()});
  EXPECT_TRUE(contains(result.err, "SIGTERM to role 1: another had failed\n"));
}

TEST(LaunchAfterAFailure, ContinuesAStoppedProcessSoThatItCanEnd) {
  LaunchCase job(std::chrono::seconds(60));
  const Launched result = job.run(
      {"echo $$ >$FOLDER/pid; kill -STOP $$; echo continued", kUntilItIsStopped + "exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "[role 0] continued\n");
  EXPECT_TRUE(contains(result.err, "role 0 is stopped: SIGCONT"));
}

TEST(LaunchAfterAFailure, LetsTheOthersContinueIfTheRulesSaySo) {
  LaunchCase job;
  job.rules = {.workers = {.on_failure = FailureRule::kContinue},
               .timeout = std::chrono::milliseconds(0),
               .grace = std::chrono::milliseconds(0)};
  // Role 0 waits at a pipe for the end of role 1; it must be able to continue after that.
  const Launched result =
      job.run({"cat <$FOLDER/pipe; echo went on", "exec 3>$FOLDER/pipe; exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "[role 0] went on\n");
}

class LaunchSignals : public testing::TestWithParam<const char*> {};

TEST_P(LaunchSignals, ReachEveryRoleAndTheirExitCodesCount) {
  const std::string signal = GetParam();
  LaunchCase job(std::chrono::seconds(60));
  const std::string trap = "trap 'echo told; exit 75' " + signal + "; ";
  // Role 1 sends the signal to launch after both roles have set their traps.
  const Launched result =
      job.run({trap + ": >$FOLDER/pipe; " + wait_for_a_signal(),
               trap + ": <$FOLDER/pipe; kill -" + signal + " $PPID; " + wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(contains(result.out, "[role 0] told\n", "[role 1] told\n"));
}

INSTANTIATE_TEST_SUITE_P(Each, LaunchSignals,
                         testing::Values("HUP", "INT", "TERM", "USR1", "USR2", "XCPU", "QUIT"));

TEST(LaunchSignal, KillsTheThirdTime) {
  // The role sends launch the next SIGTERM only after launch has passed the previous one on to the
  // role, so that no signal is lost.
  const Launched result =
      LaunchCase().run({"trap 'kill -TERM $PPID' TERM; kill -TERM $PPID; " + wait_for_a_signal()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "SIGKILL to role 0: the same signal came three times"));
}

TEST(LaunchSignal, ArrivesWhileNothingReadsTheOutput) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor unread(ends[0]);
  const FileDescriptor full(ends[1]);
  fcntl(full.get(), F_SETPIPE_SZ, 4096);
  OutputQueue err(full.get());
  err.add(std::string(5000, 'x'));
  ASSERT_TRUE(err.is_blocked());
  // The role waits until launch reads its output, which is more than its pipe holds.
  const LaunchCase job;
  const std::string script = "trap 'kill -TERM $PPID' TERM; kill -TERM $PPID; " +
                             ("head -c 2000000 /dev/zero >&2 & " + wait_for_a_signal());
  alarm(60);
  const int exit_code =
      launch([&](int) { return commands_of(job.role(Role::kWorker, 0, script)); }, job.rules,
             {.out = [](std::string_view) {},
              .err = [&](std::string_view lines) { err.add(lines); },
              .err_queue = &err});
  alarm(0);
  EXPECT_EQ(exit_code, 1) << "the third signal has killed the role";
}

TEST(LaunchSignal, IsTranslatedForARoleThatUnderstandsAnother) {
  const LaunchCase job;
  const Launched result = job.run_plan([&](int) {
    RoleCommand role =
        job.role(Role::kWorker, 0, "trap 'exit 75' USR1; kill -TERM $PPID; " + wait_for_a_signal());
    role.stop_signal = SIGUSR1;
    return commands_of(std::move(role));
  });
  EXPECT_EQ(result.exit_code, 75) << result.err;
}

TEST(LaunchRestart, StartsAllAgainAfterAFailureAndCountsTheLastTime) {
  LaunchCase job;
  job.rules.most_restarts = 5;
  // Role 0 appends a line to a file in each incarnation, and fails until the file has three lines.
  const Launched result =
      job.run({"echo >>$FOLDER/n; [ $(wc -l <$FOLDER/n) -ge 3 ]", "echo started"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_lines(result.out), 3) << result.out;
  EXPECT_TRUE(contains(result.err, "launch: restart 2 of 5\n"));
}

TEST(LaunchRestart, GivesUpAfterTheLastRestart) {
  LaunchCase job;
  job.rules.most_restarts = 2;
  const Launched result = job.run({"echo started; exit 1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 3) << result.out;
}

TEST(LaunchRestart, LeavesWrongUsageAndStopsOnRequestAlone) {
  LaunchCase job;
  job.rules.most_restarts = 2;
  for (const char* script : {"echo started; exit 2", "echo started; exit 75", "echo started",
                             "echo started; trap 'exit 1' TERM; kill -TERM $PPID; wait; exit 1"}) {
    EXPECT_EQ(count_lines(job.run({script}).out), 1) << script;
  }
}

struct Scripts {
  std::string server;
  std::string worker;
  std::string late_worker;
};

Launched run_with_late_worker(const Scripts& scripts, std::chrono::milliseconds after) {
  const LaunchCase job;
  return job.run_plan([&](int) {
    RoleCommand late = job.role(Role::kWorker, 1, scripts.late_worker);
    late.start_after = after;
    return commands_of(job.role(Role::kServer, 0, scripts.server),
                       job.role(Role::kWorker, 0, scripts.worker), std::move(late));
  });
}

TEST(Launch, StartsALateRoleAfterTheOthers) {
  // The server reads the named pipe to which the late worker writes, so it waits until launch has
  // started that worker.
  const Launched result = run_with_late_worker({.server = "cat $FOLDER/pipe",
                                                .worker = "echo early >&2",
                                                .late_worker = "echo met >$FOLDER/pipe"},
                                               std::chrono::milliseconds(100));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "[server 0] met\n");
  EXPECT_EQ(result.err, "[worker 0] early\n");
}

TEST(Launch, DoesNotStartALateRoleWhenTheJobIsOver) {
  const Launched result =
      run_with_late_worker({.server = "true", .worker = "true", .late_worker = "echo here; exit 1"},
                           std::chrono::hours(1));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "launch: worker 1 is not started: the job is ending\n");
}

// The late worker starts when the server is about to end, so no server lets the worker join.
TEST(Launch, AcceptsALateRoleThatStartsAfterTheJob) {
  const Launched result = run_with_late_worker(
      {.server = "cat $FOLDER/pipe",
       .worker = "true",
       .late_worker = "echo here >$FOLDER/pipe; trap 'exit 1' TERM; " + wait_for_a_signal()},
      std::chrono::milliseconds(1));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "launch: worker 1 came too late: the job was over\n"));
}

// The worker that was stopped has not been informed that the job is over, and no role waits for it.
TEST(Launch, AcceptsAWorkerThatWasStoppedWhenTheOthersCompletedTheJob) {
  LaunchCase job(std::chrono::seconds(60));
  job.rules.workers = {.on_failure = FailureRule::kContinue};
  const auto with_server = [&](const std::string& server) {
    return job.run_job({"true", "echo $$ >$FOLDER/pid; kill -STOP $$; rm $FOLDER/pid; exit 1"},
                       {kUntilItIsStopped + server});
  };
  const Launched result = with_server("true");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(
      contains(result.err, "launch: worker 1 was stopped when the job was completed without it\n"));
  EXPECT_EQ(with_server("exit 1").exit_code, 1) << "the job was not completed";
}

TEST(Launch, DistinguishesALateRoleThatFailsFromOneThatIsNotNeeded) {
  const Launched result = run_with_late_worker({.server = "cat $FOLDER/pipe",
                                                .worker = "true",
                                                .late_worker = "exec 4>$FOLDER/pipe; exit 1"},
                                               std::chrono::milliseconds(1));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "launch: worker 1 exited with 1\n"));
}

}  // namespace
}  // namespace syncopate::test
