#include "ps/net/process_probe.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "models/base/deadline.h"
#include "tests/end_to_end/support/run_program.h"

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

TEST(ProcessProbe, SeesThatAProcessHasNoCpu) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  RunningProgram loop({"/bin/sh", "-c", "while :; do :; done"});
  const sched_param priority{.sched_priority = 0};
  if (sched_setscheduler(loop.pid(), SCHED_IDLE, &priority) != 0 ||
      sched_setaffinity(loop.pid(), sizeof one, &one) != 0) {
    GTEST_SKIP() << "this process may not lower another one's priority";
  }
  // A busy thread on the same CPU leaves the loop 3/1027 of its time.
  std::jthread busy([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
    }
  });
  ASSERT_EQ(pthread_setaffinity_np(busy.native_handle(), sizeof one, &one), 0);
  ProcessProbe probe(process_name(loop.pid()));
  EXPECT_EQ(look_for(probe, ProcessState::kStarved), ProcessState::kStarved);
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
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const ProcessState state = probe.look();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(state, ProcessState::kUnknown);
  EXPECT_NE(probe.look(), ProcessState::kEnded);
}

TEST(ProcessProbe, SeesThatAnotherProcessHasTheIdNow) {
  const std::string own = process_name(getpid());
  EXPECT_EQ(ProcessProbe(own + "1").look(), ProcessState::kEnded);
}

}  // namespace
}  // namespace syncopate
