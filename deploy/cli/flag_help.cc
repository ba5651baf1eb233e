#include "deploy/cli/flag_help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace syncopate {
namespace {

constexpr std::size_t kDescriptionColumn = 34;

std::string description_of(const Flag& flag) {
  std::string text = flag.help;
  if (!flag.rules.choices.empty()) {
    text += fmt::format(": {}", fmt::join(flag.rules.choices, " | "));
  }
  if (flag.rules.required) return text + " (required)";
  const std::string shown =
      flag.rules.repeats && default_of(flag).empty() ? "none" : default_of(flag);
  if (!shown.empty()) text += fmt::format(" (default: {})", shown);
  if (flag.rules.repeats) text += "; may be repeated";
  return text;
}

std::string line_of(const Flag& flag) {
  std::string line = "  " + flag.first_name();
  if (flag.name.starts_with('-')) {
    const std::string placeholder = placeholder_of(flag);
    if (!placeholder.empty()) line += " " + placeholder;
  }
  if (line.size() + 2 > kDescriptionColumn) {
    line += "\n" + std::string(kDescriptionColumn, ' ');
  } else {
    line.resize(kDescriptionColumn, ' ');
  }
  return line + wrapped(description_of(flag), kDescriptionColumn, kDescriptionColumn) + "\n";
}

// In the order of the first flag of each.
std::vector<std::string> groups_of(const std::vector<Flag>& flags) {
  std::vector<std::string> groups;
  for (const Flag& flag : flags) {
    if (flag.rules.hidden) continue;
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  }
  return groups;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t column, std::size_t indent) {
  std::string result;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool is_first = column == indent || result.empty();
    if (!is_first && column + 1 + word.size() > kHelpColumns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    if (end < text.size() && text[end] == '\n') {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    }
    begin = end + 1;
  }
  return result;
}

std::string help_text(const HelpFrame& frame, const std::vector<Flag>& flags) {
  std::string positions;
  for (const Flag& flag : flags) {
    if (!flag.rules.hidden && !flag.name.starts_with('-')) positions += " " + flag.name;
  }
  std::string text = wrapped(frame.summary, 0, 0) + "\n\n";
  text += fmt::format("Usage: {}{} [FLAGS]{}\n", frame.command, positions,
                      frame.rest.empty() ? "" : " -- " + frame.rest);
  for (const std::string& group : groups_of(flags)) {
    text += group.empty() ? "\n" : fmt::format("\n{}:\n", group);
    for (const Flag& flag : flags) {
      if (!flag.rules.hidden && flag.group == group) text += line_of(flag);
    }
  }
  if (!frame.footer.empty())
    text += "\n" + frame.footer + (frame.footer.ends_with('\n') ? "" : "\n");
  return text;
}

}  // namespace syncopate
