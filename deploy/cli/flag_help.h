// The text of --help: flags by group, each with its value, its choices and its default.
#pragma once

#include <string>
#include <vector>

#include "deploy/cli/flag.h"

namespace syncopate {

inline constexpr std::size_t kHelpColumns = 100;

struct HelpFrame {
  std::string command;  // "syncopate train"
  std::string summary;
  std::string rest;    // "[FLAGS OF train]", which stand behind --; "": none
  std::string footer;  // printed as it is
};

// No line is longer than kHelpColumns, the footer's lines excepted.
std::string help_text(const HelpFrame& frame, const std::vector<Flag>& flags);

// Breaks `text` at blanks into lines of at most kHelpColumns; the first begins at column `column`,
// the others are indented by `indent`. Newlines of the text stay.
std::string wrapped(const std::string& text, std::size_t column, std::size_t indent);

}  // namespace syncopate
