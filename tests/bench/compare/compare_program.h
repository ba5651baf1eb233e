// Starts `syncopate-bench compare` as a program, for the tests of its work and of its usage.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/end_to_end/run_program.h"

namespace syncopate::test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Returns the command line of a small comparison with its results in `report`.
inline Words compare(const fs::path& report, const Words& more) {
  return Words{SYNCOPATE_BENCH, "compare",  "--model",       "mlp",
               "--workers",     "2",        "--servers",     "1",
               "--epochs",      "1",        "--seeds",       "1",
               "--evaluations", "2",        "--no-progress", "--target-accuracy",
               "0.5",           "--report", report} +
         more;
}

inline ProgramResult run_compare(const fs::path& report, const Words& more) {
  return RunningProgram(compare(report, more)).wait();
}

inline const Words kSmall{"--data", "synthetic:1x8x8:4:512"};

inline Words split(const std::string& text, char separator) {
  Words parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// Removes the line breaks that the program adds to its output for a terminal.
inline std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

inline std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

}  // namespace syncopate::test
