#include "tests/bench/compare/compare_program.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/as_words.h"

namespace syncopate::test {

Words compare(const std::filesystem::path& report, const Words& more) {
  return as_words(SYNCOPATE_BENCH,
                  "compare --model mlp --workers 2 --servers 1 --epochs 1 --seeds 1 --evaluations "
                  "2 --no-progress --target-accuracy 0.5 --explain --report",
                  report) +
         more;
}

ProgramResult run_compare(const std::filesystem::path& report, const Words& more) {
  return run_program(compare(report, more));
}

std::string weights_in(const std::filesystem::path& report, const std::string& run) {
  std::istringstream lines(read_text(report / "runs" / (run + ".jsonl")));
  std::string hash;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.at("event") == "summary") hash = object.at("weights_hash");
  }
  EXPECT_NE(hash, "") << run;
  return hash;
}

Words split(const std::string& text, char separator) {
  Words parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

}  // namespace syncopate::test
