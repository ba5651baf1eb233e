// Tests a worker's shared-memory segment between processes; segment_program.cc is the other
// process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>

#include "ps/net/segment.h"
#include "tests/end_to_end/support/run_program.h"

namespace syncopate::ps {
namespace {

using std::chrono::seconds;
using test::ProgramResult;
using test::RunningProgram;

constexpr std::int64_t kElements = 100'000;

TEST(SegmentBetweenProcesses, IsSharedMemory) {
  const SegmentOwner owner(kElements, "a job");
  std::iota(owner.values().f32().begin(), owner.values().f32().end(), 0.0F);
  test::successful(test::run_program(
      {SYNCOPATE_SEGMENT_PROGRAM, "map", owner.name(), "a job", std::to_string(kElements)}));
  EXPECT_EQ(owner.gradients().f32()[0], 0.0F);
  EXPECT_EQ(owner.gradients().f32()[kElements - 1], 2.0F * (kElements - 1));
}

TEST(SegmentBetweenProcesses, OutlivesAWorkerThatIsKilled) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("segment_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "name";
  RunningProgram worker(
      {SYNCOPATE_SEGMENT_PROGRAM, "own", file.string(), "a job", std::to_string(kElements)});
  const bool is_there = worker.wait_until_file_has(file, "\n");
  std::string name = test::read_text(file);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(is_there);
  name.pop_back();
  const auto segment = map_segment(name, "a job", kElements, Deadline::after(seconds(30)));
  ASSERT_TRUE(segment);
  worker.send(SIGKILL);
  EXPECT_EQ(worker.wait().ended_by_signal, SIGKILL);
  EXPECT_EQ(segment->values.f32()[kElements - 1], static_cast<float>(kElements - 1));
  segment->gradients.f32()[0] = 1.0F;
  EXPECT_FALSE(map_segment(name, "a job", kElements, Deadline::after(seconds(30))));
}

// The shard can connect to the stopped worker but gets no answer, so it continues without shared
// memory.
TEST(SegmentBetweenProcesses, IsNotMappedWhenTheWorkerIsStopped) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("stopped_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "name";
  RunningProgram worker({SYNCOPATE_SEGMENT_PROGRAM, "own", file.string(), "a job", "10"});
  const bool is_there = worker.wait_until_file_has(file, "\n");
  std::string name = test::read_text(file);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(is_there);
  name.pop_back();
  worker.send(SIGSTOP);
  siginfo_t stopped{};  // is filled once all threads have stopped
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(worker.pid()), &stopped, WSTOPPED | WEXITED | WNOWAIT),
            0);
  EXPECT_FALSE(map_segment(name, "a job", 10, Deadline::after(std::chrono::milliseconds(50))));
}

}  // namespace
}  // namespace syncopate::ps
