// Describes one flag of a command line: the variable that gets its value, the values that it
// accepts, and its text in --help.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/flag_rules.h"

namespace syncopate {

struct Flag {
  // The name of the flag, such as "--epochs"; a second spelling may follow after a comma. A name
  // without dashes, such as "DIR", means a value that is given by its position.
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

// Parses flag.words into the flag's target. Throws UsageError naming the flag, its text and what
// was expected. For a typing error such as a decimal comma the message suggests the number that was
// probably meant.
void store_value(const Flag& flag);

// Returns a flag's placeholder such as "INT", "FILE" or "HOST:PORT"; empty for a switch.
std::string placeholder_of(const Flag& flag);
// Returns the default value as text; empty if there is no default.
std::string default_of(const Flag& flag);

// Throws UsageError unless `value` is one of `names`. A name with a colon, such as "mnist:DIR",
// accepts every longer value that begins with the text up to the colon. flag: the name of the flag,
// for the message. The message has the text that `explain` returns for `value`. If there is no such
// text, the message suggests the name that was probably meant.
void require_name(std::string_view flag, const std::string& value, const Names& names,
                  ExplainName explain = nullptr);

inline constexpr std::size_t kHelpColumns = 100;

struct HelpFrame {
  std::string command;  // the full name of the command, such as "syncopate train"
  std::string summary;
  // The text for the words after -- in the usage line, such as "[FLAGS OF train]"; "" if the
  // command takes no such words.
  std::string rest;
  std::string footer;  // the end of --help; its lines are not wrapped
};

// Returns the text of --help. No line has more than kHelpColumns columns, except in the footer.
std::string help_text(const HelpFrame& frame, const std::vector<Flag>& flags);

// Breaks `text` at blanks into lines of at most kHelpColumns. The first line begins at column
// `column`; the other lines are indented by `indent` columns. Newlines in the text are kept.
std::string wrapped(const std::string& text, std::size_t column, std::size_t indent);

}  // namespace syncopate
