#include "tests/end_to_end/support/task_results.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <ostream>

#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/support/contains.h"

namespace syncopate::test {

std::vector<ProgramResult> run_all(const std::vector<std::vector<std::string>>& commands) {
  std::vector<std::unique_ptr<RunningProgram>> running;
  running.reserve(commands.size());
  for (const auto& command : commands) running.push_back(std::make_unique<RunningProgram>(command));
  std::vector<ProgramResult> results;
  results.reserve(running.size());
  for (const auto& program : running) results.push_back(program->wait());
  return results;
}

void expect_one_line(const ProgramResult& result, const std::vector<std::string>& words) {
  EXPECT_FALSE(result.timed_out);
  EXPECT_GT(result.exit_code, 0) << result.err;
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = result.err.find("syncopate: ", at)) != std::string::npos; ++at) {
    ++lines;
  }
  EXPECT_EQ(lines, 1U) << result.err;
  for (const std::string& word : words) {
    EXPECT_TRUE(contains(result.err, word)) << word << " in: " << result.err;
  }
}

std::string line_of_worker(const ProgramResult& launch, int worker) {
  const std::size_t begin = launch.err.find("[worker " + std::to_string(worker) + "] syncopate: ");
  if (begin == std::string::npos) return "";
  return launch.err.substr(begin, launch.err.find('\n', begin) - begin);
}

void expect_all_name(const ProgramResult& launch, int failed, int workers) {
  for (int i = 0; i < workers; ++i) {
    if (i == failed) continue;
    const std::string line = line_of_worker(launch, i);
    EXPECT_FALSE(line.empty()) << "worker " << i << " says nothing:\n" << launch.err;
    EXPECT_TRUE(contains(line, "rank " + std::to_string(failed) + " (host "));
  }
}

std::ostream& operator<<(std::ostream& out, const WorkerFault& fault) { return out << fault.name; }

ProgramResult fail_after_50_steps(const std::vector<std::string>& job, const std::string& metrics,
                                  const WorkerFault& fault) {
  RunningProgram launch(syncopate_command(job));
  const auto victim = worker_of(launch.pid(), fault.worker);
  EXPECT_TRUE(victim) << "there is no worker " << fault.worker;
  EXPECT_TRUE(launch.wait_until_file_has(metrics, "\"step\":50,"));
  const EndTimer since_fault;
  EXPECT_EQ(victim ? kill(*victim, fault.signal) : -1, 0);
  ProgramResult result = launch.wait();
  expect_ended_in_time(since_fault);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  expect_all_name(result, fault.worker, 3);
  return result;
}

}  // namespace syncopate::test
