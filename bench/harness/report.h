// How results are shown: columns for people, a file for programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/harness/measure.h"

namespace syncopate::bench {

// "8.25": three significant digits, never with an exponent.
std::string number_text(double value);

// "8.25 [8.10-8.61]": median, lowest, highest; `scale` as from seconds (1e3: ms).
std::string spread_text(const Spread& spread, double scale = 1.0);

// A word as a shell takes it: in quotes where it must be.
std::string shell_word(const std::string& word);

// Of this process, quoted so that a shell takes it again: reports say what made them.
std::string command_line();

// Lines of columns, each as wide as its widest cell; the first row is the heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// Throws UsageError unless a file can be made there: said before the measurement, not after it. An
// empty path stands for no file.
void require_writable(const std::filesystem::path& path);

// Writes the file whole or not at all.
// Throws UsageError when the file cannot be written.
void write_report(const std::filesystem::path& path, const std::string& text);

}  // namespace syncopate::bench
