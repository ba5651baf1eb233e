// Runs tasks of a job that a test starts itself, and checks how they end.
#pragma once

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

}  // namespace syncopate::test
