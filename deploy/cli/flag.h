// Describes one flag of a command line: where its value goes, which values it takes, and how --help
// shows it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/flag_rules.h"

namespace syncopate {

struct Flag {
  // The name of the flag, as in "--epochs"; a second spelling follows a comma. A name without
  // dashes, as in "DIR", marks a value that is read by its position.
  std::string name;
  FlagTarget target;
  std::string help;  // the description in --help, a noun phrase
  FlagRules rules;
  std::string group;
  std::vector<std::string> words{};  // the values as the user typed them
  bool is_given = false;

  bool is_switch() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const;
  // Returns the flag's first spelling: "--epochs" for a flag named "--epochs,-e".
  std::string first_name() const { return name.substr(0, name.find(',')); }
};

// Parses flag.words into the flag's target. Throws UsageError, which names the flag, the text, what
// was expected and, for a slip such as a decimal comma, the number that was probably meant.
void store_value(const Flag& flag);

// Returns a flag's placeholder such as "INT", "FILE" or "HOST:PORT"; empty for a switch.
std::string placeholder_of(const Flag& flag);
// Returns as text the value that a run has without the flag; empty if there is no default.
std::string default_of(const Flag& flag);

// Throws UsageError unless `value` is one of `names`, as FlagRules::choices; the message suggests
// the name that was probably meant, unless `explain` knows more.
void require_name(std::string_view flag, const std::string& value, const Names& names,
                  ExplainName explain = nullptr);

inline constexpr std::size_t kHelpColumns = 100;

struct HelpFrame {
  std::string command;  // the full name of the command, such as "syncopate train"
  std::string summary;
  // The usage text shows the words behind -- as this text, such as "[FLAGS OF train]"; "" if the
  // command takes no such words.
  std::string rest;
  std::string footer;  // the end of --help, without line breaking
};

// Returns the text of --help. No line is longer than kHelpColumns, except in the footer.
std::string help_text(const HelpFrame& frame, const std::vector<Flag>& flags);

// Breaks `text` at blanks into lines of at most kHelpColumns. The first line begins at column
// `column`; the others are indented by `indent` columns. Newlines in the text stay.
std::string wrapped(const std::string& text, std::size_t column, std::size_t indent);

}  // namespace syncopate
