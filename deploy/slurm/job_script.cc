#include "deploy/slurm/job_script.h"

#include <algorithm>
#include <cctype>

namespace syncopate {
namespace {

constexpr std::string_view kNextComponent = "#SBATCH hetjob";

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_=+./:,@%").find(c) != std::string_view::npos;
}

}  // namespace

JobScript::JobScript(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines_.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

int JobScript::components() const {
  return 1 + static_cast<int>(std::ranges::count(lines_, kNextComponent));
}

bool JobScript::set_option(int component, std::string_view name, std::string_view value) {
  const std::string beginning = "#SBATCH --" + std::string(name) + "=";
  int current = 0;
  for (std::string& line : lines_) {
    if (line == kNextComponent) ++current;
    if (current != component) continue;
    if (!line.starts_with(beginning) && !line.starts_with("#" + beginning)) continue;
    line = beginning + std::string(value);
    return true;
  }
  return false;
}

bool JobScript::set_variable(std::string_view name, std::string_view shell_text) {
  const std::string beginning = std::string(name) + "=";
  const auto line = std::ranges::find_if(
      lines_, [&](const std::string& text) { return text.starts_with(beginning); });
  if (line == lines_.end()) return false;
  *line = beginning + std::string(shell_text);
  return true;
}

bool JobScript::extend_array(std::string_view name, std::span<const std::string> words) {
  const std::string beginning = std::string(name) + "=(";
  const auto line = std::ranges::find_if(lines_, [&](const std::string& text) {
    return text.starts_with(beginning) && text.ends_with(')');
  });
  if (line == lines_.end()) return false;
  line->pop_back();
  for (const std::string& word : words) *line += " " + shell_word(word);
  *line += ')';
  return true;
}

std::string JobScript::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";  // ends the quotes, an escaped one, begins them again
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string shell_array(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return "(" + text + ")";
}

}  // namespace syncopate
