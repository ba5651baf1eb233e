#include "bench/harness/report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {

std::string number_text(double value) {
  const double size = std::abs(value);
  std::ostringstream text;
  text << std::fixed
       << std::setprecision(size >= 99.95    ? 0
                            : size >= 9.995  ? 1
                            : size >= 0.9995 ? 2
                                             : 3)
       << value;
  return text.str();
}

std::string spread_text(const Spread& spread, double scale) {
  return number_text(scale * spread.median) + " [" + number_text(scale * spread.min) + "-" +
         number_text(scale * spread.max) + "]";
}

nlohmann::json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

void require_writable(const std::filesystem::path& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::is_directory(path) || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UsageError("--json " + path.string() + ": cannot be written; does its folder exist?");
  }
}

void write_report(const std::filesystem::path& path, const std::string& text) {
  replace_file(path, text + "\n");
}

std::string text_of_file(const std::filesystem::path& path) {
  const std::ifstream in(path, std::ios::binary);
  // Uses rdbuf(): a stream iterator would throw if a process ends while its file in /proc is read.
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> words_of_command(const std::string& command) {
  std::vector<std::string> words;
  bool is_quoted = false;
  bool is_in_word = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' && !is_quoted) {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) words.emplace_back();
    is_in_word = true;
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == '\\' && !is_quoted && i + 1 < command.size()) {
      words.back() += command[++i];
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::string command_line() {
  const std::string text = text_of_file("/proc/self/cmdline");
  std::string command;
  for (std::size_t begin = 0; begin < text.size();) {  // the file ends each word with a zero byte
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    command += (command.empty() ? "" : " ") + shell_word(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return command;
}

}  // namespace syncopate::bench
