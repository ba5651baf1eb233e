// Starts `syncopate-bench compare` as a program, for the tests of its work and of its usage.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Returns the command line of a small comparison with its results in `report`.
Words compare(const fs::path& report, const Words& more);

ProgramResult run_compare(const fs::path& report, const Words& more);

// Returns the hash of the weights with which a run in the folder of a report ended.
std::string weights_in(const fs::path& report, const std::string& run);

// A comparison whose results are in a folder of the test.
class Compare : public testing::Test {
 protected:
  ProgramResult run(const Words& more) const { return run_compare(dir_, more); }

  const TemporaryFolder scratch_;
  const fs::path dir_ = scratch_ / "r";
};

inline const Words kSmall{"--data", "synthetic:1x8x8:4:512"};

Words split(const std::string& text, char separator);

// Removes the line breaks that the program adds to its output for a terminal.
std::string in_one_line(std::string text);

std::string last_line(const std::string& text);

}  // namespace syncopate::test
