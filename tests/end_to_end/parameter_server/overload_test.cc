// Runs jobs beside six busy loops of the same priority, and tests that no task is declared dead,
// except one that is killed or stopped. The short form takes a minute. It has a shorter peer
// timeout, and lets one role run only when no other thread wants a CPU, which has the same effect
// as a far busier machine. The soak takes about 40 minutes.
#include <gtest/gtest.h>
#include <sched.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

using std::chrono::seconds;

constexpr bool kIsSoak = SYNCOPATE_IS_SOAK != 0;
constexpr int kBusyLoops = 6;
// How every line begins its reason that declares a task dead, or that the task itself prints later.
constexpr const char* kDead = "sent nothing for ";
constexpr const char* kObserver = ", in which this task was not scheduled for ";

struct OverloadedJob {
  const char* name;
  int workers;
  Arguments training;
};

// The short form has fewer samples, whose evaluation would take a minute beside the loops.
OverloadedJob resnet50() {
  const std::string samples = kIsSoak ? "512" : "32";
  return {"resnet50", 2,
          as_words("--model resnet50 --data", "synthetic:3x64x64:10:" + samples,
                   "--batch-size-per-replica 4 --optimizer momentum")};
}
OverloadedJob mlp() { return {"mlp", kIsSoak ? 16 : 4, {"--model", "mlp", "--data", "digits"}}; }

class AnOverloadedMachine {
 public:
  AnOverloadedMachine() {
    for (int i = 0; i < kBusyLoops; ++i) {
      loops_.push_back(std::make_unique<RunningProgram>(
          Arguments{"/bin/sh", "-c", "while :; do :; done"}, seconds(600)));
    }
  }

 private:
  std::vector<std::unique_ptr<RunningProgram>> loops_;
};

Arguments command(const OverloadedJob& job, int run_seconds, const std::string& metrics) {
  const Arguments timeout = kIsSoak ? Arguments{} : Arguments{"--peer-timeout", "1"};
  return syncopate_command(
      as_words("launch --workers", std::to_string(job.workers),
               "--servers 2 -- train --strategy parameter-server --cache-dir", SYNCOPATE_TEST_CACHE,
               "--threads 1 --epochs 100000 --max-seconds", std::to_string(run_seconds),
               "--no-progress --log-every 1 --metrics", metrics) +
      timeout + job.training);
}

struct OverloadedRun {
  OverloadedJob job;
  int run_seconds = 0;
  int number = 0;
  std::optional<Role> starved;
};
std::ostream& operator<<(std::ostream& out, const OverloadedRun& run) {
  out << run.job.name << "_for_" << run.run_seconds << "_s_" << run.number;
  if (run.starved) out << "_without_" << run.starved->kind << run.starved->index;
  return out;
}

std::vector<OverloadedRun> all_runs() {
  std::vector<OverloadedRun> runs;
  if (!kIsSoak) {
    for (const Role starved : {Role{"server", 0}, Role{"server", 1}, Role{"worker", 1}}) {
      runs.push_back({mlp(), 6, 0, starved});
    }
    return runs;
  }
  for (const OverloadedJob& job : {resnet50(), mlp()}) {
    for (int i = 0; i < 2; ++i) runs.push_back({job, 300, i, std::nullopt});
    for (int i = 0; i < 8; ++i) runs.push_back({job, 60, i, std::nullopt});
  }
  return runs;
}

// Sets the scheduling policy of each thread of the process: with SCHED_IDLE, a thread runs only
// while no other thread wants its CPU. Returns whether the kernel permits that.
bool set_policy(pid_t process, int policy) {
  const sched_param priority{};
  const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
  std::error_code ended;
  for (const auto& thread : std::filesystem::directory_iterator(threads, ended)) {
    const pid_t id = std::stoi(thread.path().filename());
    if (sched_setscheduler(id, policy, &priority) != 0) return false;
  }
  return true;
}

class AnOverloadedJob : public testing::TestWithParam<OverloadedRun> {};

TEST_P(AnOverloadedJob, LosesNoTask) {
  const OverloadedRun& run = GetParam();
  const TemporaryFolder scratch;
  std::optional<AnOverloadedMachine> machine;
  if (!run.starved) machine.emplace();
  RunningProgram job(command(run.job, run.run_seconds, scratch / "m.jsonl"), seconds(550));
  if (run.starved) {
    ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\""))
        << job.err_so_far();
    const auto starved = process_of(job.pid(), *run.starved);
    ASSERT_TRUE(starved);
    if (!set_policy(*starved, SCHED_IDLE)) GTEST_SKIP() << "this kernel refuses SCHED_IDLE";
    machine.emplace();
    EXPECT_FALSE(job.ends_within(seconds(4))) << "four peer timeouts: " << job.err_so_far();
    machine.reset();
    // Other programs may keep the CPUs busy until the launcher gives up waiting for the role.
    set_policy(*starved, SCHED_OTHER);
  }
  const ProgramResult result = successful(job.wait());
  EXPECT_FALSE(contains(result.err, kDead));
}

INSTANTIATE_TEST_SUITE_P(Trains, AnOverloadedJob, testing::ValuesIn(all_runs()),
                         testing::PrintToStringParamName());

struct Loss {
  OverloadedJob job;
  Role victim;
  int signal = 0;
  const char* name_of_victim;
  const char* state;  // what the line says about the process
};
std::ostream& operator<<(std::ostream& out, const Loss& loss) {
  return out << loss.job.name << '_' << loss.victim.kind << loss.victim.index << '_'
             << (loss.signal == SIGSTOP ? "stopped" : "killed");
}

std::vector<Loss> all_losses() {
  constexpr const char* kStopped = "; its process is stopped";
  constexpr const char* kEnded = "; its process has ended";
  std::vector<Loss> losses;
  for (const OverloadedJob& job : {resnet50(), mlp()}) {
    losses.push_back({job, {"server", 1}, SIGSTOP, "server 1 (host ", kStopped});
    losses.push_back({job, {"worker", 1}, SIGKILL, "worker 1 (host ", kEnded});
    if (!kIsSoak) continue;
    losses.push_back({job, {"server", 0}, SIGSTOP, "server 0 at ", kStopped});
    losses.push_back({job, {"server", 0}, SIGKILL, "server 0 at ", "; see its output"});
    losses.push_back({job, {"server", 1}, SIGKILL, "server 1 (host ", kEnded});
    losses.push_back({job, {"worker", 1}, SIGSTOP, "worker 1 (host ", kStopped});
  }
  return losses;
}

// Returns the line of `text` that begins its message with "syncopate: " and `name`.
std::string line_about(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("syncopate: " + name);
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

class ALostRole : public testing::TestWithParam<Loss> {};

TEST_P(ALostRole, IsNamedWithItsSilenceAndTheObserversDelay) {
  const Loss& loss = GetParam();
  const TemporaryFolder scratch;
  const AnOverloadedMachine machine;
  RunningProgram job(command(loss.job, 100000, scratch / "m.jsonl"), seconds(550));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\""))
      << job.err_so_far();
  const auto victim = process_of(job.pid(), loss.victim);
  ASSERT_TRUE(victim);
  const EndTimer since_loss;
  ASSERT_EQ(kill(*victim, loss.signal), 0);
  ASSERT_TRUE(job.wait_until_err_has(std::string("syncopate: ") + loss.name_of_victim))
      << job.err_so_far();
  expect_ended_in_time(since_loss);
  // Under async the others go on without a worker.
  if (std::string(loss.victim.kind) == "worker") job.send(SIGTERM);
  const std::string line = line_about(job.wait().err, loss.name_of_victim);
  EXPECT_TRUE(contains(line, kDead, kObserver, loss.state));
}

INSTANTIATE_TEST_SUITE_P(Of, ALostRole, testing::ValuesIn(all_losses()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace syncopate::test
