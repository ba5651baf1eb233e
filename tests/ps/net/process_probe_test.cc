#include "ps/net/process_probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "models/base/deadline.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/file_limit.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

using test::RunningProgram;

// Looks until the state is `expected`, as often as a PeerSilence does. Returns the last state.
ProcessState look_for(ProcessProbe& probe, ProcessState expected) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  ProcessState state = probe.look();
  while (state != expected && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    state = probe.look();
  }
  return state;
}

TEST(ProcessProbe, SeesAProcessStopContinueAndEnd) {
  RunningProgram program({"/bin/sleep", "1000"});
  ProcessProbe probe(process_name(program.pid()));
  // At first the process may wait for the disk, from which the kernel loads the program.
  EXPECT_EQ(look_for(probe, ProcessState::kAlive), ProcessState::kAlive);
  program.send(SIGSTOP);
  EXPECT_EQ(look_for(probe, ProcessState::kStopped), ProcessState::kStopped);
  program.send(SIGCONT);
  EXPECT_EQ(look_for(probe, ProcessState::kAlive), ProcessState::kAlive);
  program.send(SIGKILL);
  // Until its parent waits for it, the process is a zombie.
  EXPECT_EQ(look_for(probe, ProcessState::kEnded), ProcessState::kEnded);
  program.wait();
  EXPECT_EQ(probe.look(), ProcessState::kEnded);
}

// A folder like /proc with one process, which this process's name denotes.
class RecordedProcess {
 public:
  RecordedProcess() {
    start_time_ = name_.substr(name_.rfind(' ') + 1);
    folder_ = root_ / std::to_string(getpid());
    write_stat(folder_ / "stat", 'S');
  }

  // A thread in this state that has had a CPU for so long.
  void set_thread(int id, char state, long run_nanoseconds) const {
    const std::filesystem::path thread = folder_ / "task" / std::to_string(id);
    write_stat(thread / "stat", state);
    std::ofstream(thread / "schedstat") << run_nanoseconds << " 30000 17\n";
  }
  ProcessProbe probe() const { return ProcessProbe(name_, root_.path()); }

 private:
  void write_stat(const std::filesystem::path& file, char state) const {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream text(file);
    text << getpid() << " (a (b) c) " << state;
    for (int field = 4; field < 22; ++field) text << " 0";
    text << " " << start_time_ << " 0 0\n";
  }

  std::string name_ = process_name(getpid());
  std::string start_time_;
  const TemporaryFolder root_;
  std::filesystem::path folder_;
};

TEST(ProcessProbe, SeesThatAThreadThatIsReadyHasNoCpu) {
  const RecordedProcess process;
  process.set_thread(1, 'S', 500);
  process.set_thread(2, 'R', 1000);
  ProcessProbe probe = process.probe();
  EXPECT_EQ(probe.look(), ProcessState::kAlive) << "the first look has nothing to compare with";
  EXPECT_EQ(probe.look(), ProcessState::kStarved);
  process.set_thread(2, 'R', 1001);
  EXPECT_EQ(probe.look(), ProcessState::kAlive) << "it had a CPU";
  EXPECT_EQ(probe.look(), ProcessState::kStarved);
  process.set_thread(2, 'S', 1001);
  EXPECT_EQ(probe.look(), ProcessState::kAlive) << "it waits for something else";
  process.set_thread(2, 'R', 1001);
  EXPECT_EQ(probe.look(), ProcessState::kAlive) << "it is ready since this look";
}

TEST(ProcessProbe, SeesThatAThreadWaitsForADisk) {
  const RecordedProcess process;
  process.set_thread(1, 'R', 1000);
  process.set_thread(2, 'D', 1000);
  ProcessProbe probe = process.probe();
  EXPECT_EQ(probe.look(), ProcessState::kBlocked);
  EXPECT_EQ(probe.look(), ProcessState::kStarved);
}

// The files that the test above imitates.
TEST(ProcessProbe, FindsTheCpuTimeOfARunningThreadInTheFilesOfTheKernel) {
  std::ifstream file("/proc/self/schedstat");
  unsigned long long run_nanoseconds = 0;
  EXPECT_TRUE(file >> run_nanoseconds);
  EXPECT_GT(run_nanoseconds, 0U);
}

TEST(ProcessProbe, KnowsNothingOfAProcessElsewhere) {
  const std::string own = process_name(getpid());
  ASSERT_NE(own, "");
  EXPECT_EQ(ProcessProbe("").look(), ProcessState::kUnknown);
  EXPECT_EQ(ProcessProbe("another machine " + own).look(), ProcessState::kUnknown);
  EXPECT_EQ(ProcessProbe(own.substr(0, own.size() / 2)).look(), ProcessState::kUnknown);
  EXPECT_EQ(ProcessProbe(own.substr(0, own.rfind(' '))).look(), ProcessState::kUnknown);
}

TEST(ProcessProbe, TakesNoProcessForEndedWhileThisProcessCanOpenNoFile) {
  ProcessProbe probe(process_name(getpid()));
  std::optional<FileLimit> none(0);
  const ProcessState state = probe.look();
  none.reset();
  EXPECT_EQ(state, ProcessState::kUnknown);
  EXPECT_NE(probe.look(), ProcessState::kEnded);
}

TEST(ProcessProbe, SeesThatAnotherProcessHasTheIdNow) {
  const std::string own = process_name(getpid());
  EXPECT_EQ(ProcessProbe(own + "1").look(), ProcessState::kEnded);
}

}  // namespace
}  // namespace syncopate
