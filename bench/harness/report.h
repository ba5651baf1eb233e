// Formats results: tables for people and files for programs.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness/measure.h"

namespace syncopate::bench {

// Returns a number with three significant digits without an exponent, such as "8.25".
std::string number_text(double value);

// Returns median, minimum and maximum, such as "8.25 [8.10-8.61]". Values are first multiplied by
// `scale`; 1e3 converts seconds to milliseconds.
std::string spread_text(const Spread& spread, double scale = 1.0);

// Returns a spread as JSON: {"median":M, "min":L, "max":H}.
nlohmann::json spread_json(const Spread& spread);

// Returns a word of a command line, in quotes if a shell would change the word otherwise.
std::string shell_word(const std::string& word);

// Splits a command line that shell_word() has quoted into its words.
std::vector<std::string> words_of_command(const std::string& command);

// Returns the command line of this process, quoted for a shell. Reports print it, so that a reader
// can repeat the run.
std::string command_line();

// Formats rows into columns, each as wide as its widest cell. The first row is the heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// Checks that a report can be written to `path`; called before the measurements. Does nothing for
// an empty path, which means that no report is written. Throws UsageError when the file cannot be
// created.
void require_writable(const std::filesystem::path& path);

// Returns the bytes of a file; "" if it cannot be read.
std::string text_of_file(const std::filesystem::path& path);

// Writes a report file completely or not at all. Throws FileError when the file cannot be written.
void write_report(const std::filesystem::path& path, const std::string& text);

}  // namespace syncopate::bench
