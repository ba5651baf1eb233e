// Runs tasks of a job that a test starts itself, and checks how they end.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"

namespace syncopate::test {

// Starts all commands, then waits for all of them. A command that takes longer than half a minute
// is killed.
std::vector<ProgramResult> run_all(const std::vector<std::vector<std::string>>& commands);

// Expects that the task ended by itself with a failure, and that it printed one line beginning with
// "syncopate: " that contains all the words.
void expect_one_line(const ProgramResult& result, const std::vector<std::string>& words);

// Returns the line "syncopate: ..." that a worker of `launch` printed to stderr; "" if there is
// none.
std::string line_of_worker(const ProgramResult& launch, int worker);

// Expects that every worker but `failed` printed a line that names `failed`.
void expect_all_name(const ProgramResult& launch, int failed, int workers);

// A signal that a worker gets in the middle of a job, and the transport between the workers.
struct WorkerFault {
  const char* name;
  int worker;
  int signal;
  const char* transport;
};
std::ostream& operator<<(std::ostream& out, const WorkerFault& fault);

// Starts `launch` with three workers that write a line for each step to `metrics`, sends the signal
// after step 50, and expects that all end within five seconds and name the worker.
ProgramResult fail_after_50_steps(const std::vector<std::string>& job, const std::string& metrics,
                                  const WorkerFault& fault);

}  // namespace syncopate::test
