// Tests two tasks in separate network namespaces, as in two containers of one host. They reach each
// other over TCP and cannot share memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

using test::ProgramResult;
using test::RunningProgram;

ProgramResult run(std::vector<std::string> command) {
  command.insert(command.begin(), "ip");
  // The command begins with env, which searches for the program, and prints an error when it is
  // missing.
  command.insert(command.begin(), "env");
  return test::run_program(command);
}

// Makes two network namespaces that are joined by a pair of virtual interfaces.
class TasksInSeparateNetworks : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::vector<std::string>> commands = {
        {"netns", "add", first_},
        {"netns", "add", second_},
        as_words("-n", first_, "link add cable type veth peer name cable netns", second_),
        as_words("-n", first_, "addr add 10.77.0.1/24 dev cable"),
        as_words("-n", second_, "addr add 10.77.0.2/24 dev cable"),
        as_words("-n", first_, "link set cable up"),
        as_words("-n", second_, "link set cable up"),
        as_words("-n", first_, "link set lo up"),
        as_words("-n", second_, "link set lo up")};
    for (const std::vector<std::string>& command : commands) {
      const ProgramResult result = run(command);
      if (result.exit_code != 0) {
        GTEST_SKIP() << "network namespaces cannot be made here: " << result.err;
      }
    }
  }
  void TearDown() override {
    for (const std::string& name : {first_, second_}) (void)run({"netns", "delete", name});
  }

  static std::vector<std::string> task(const std::string& space, const std::string& transport,
                                       int index) {
    // All ports are free in a new network namespace.
    return as_words("env ip netns exec", space, SYNCOPATE_RANK_PROGRAM, transport,
                    std::to_string(index), "2 2 10.77.0.1:4000 -1");
  }
  std::vector<ProgramResult> run_job(const std::string& transport) const {
    RunningProgram rank_zero(task(first_, transport, 0));
    RunningProgram rank_one(task(second_, transport, 1));
    return {rank_zero.wait(), rank_one.wait()};
  }

  const std::string first_ = "syncopate-test-" + std::to_string(getpid()) + "-0";
  const std::string second_ = "syncopate-test-" + std::to_string(getpid()) + "-1";
};

TEST_F(TasksInSeparateNetworks, SumOverTcpByDefault) {
  for (const ProgramResult& result : run_job("ring")) EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(TasksInSeparateNetworks, FailWhenSharedMemoryIsRequested) {
  for (const ProgramResult& result : run_job("shm")) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(
        contains(result.err, "--transport shm: the tasks cannot map one segment of memory"));
  }
}

}  // namespace
}  // namespace syncopate
