// Tasks of a job that a test starts by hand, and how they end.
#pragma once

#include <string>
#include <vector>

#include "tests/end_to_end/run_program.h"

namespace syncopate::test {

// Starts all, then waits for all; one that takes longer than half a minute is killed.
std::vector<ProgramResult> run_all(const std::vector<std::vector<std::string>>& commands);

// Ended by itself, failed, and with one line of ours that has all the words.
void expect_one_line(const ProgramResult& result, const std::vector<std::string>& words);

}  // namespace syncopate::test
