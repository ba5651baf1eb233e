// Describes one flag of a command line: where its value goes, which values it takes, and how --help
// shows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/enum_names.h"

namespace syncopate {

using Names = std::vector<std::string_view>;

// The value of an enumeration with names (models/base/enum_names.h). The flag takes these names,
// and
// --help shows the name of the value as the default.
struct EnumTarget {
  Names names;
  std::string_view value;  // the name of the value before a flag is parsed
  std::function<void(std::string_view)> store;
};
template <HasNames Enum>
EnumTarget enum_target(Enum& value) {
  return {names<Enum>(), name(value),
          [&value](std::string_view text) { value = *value_named<Enum>(text); }};
}

// A FlagTarget says where the value of a flag is stored. A bool becomes true if the flag is given.
// A function is called with the text, and throws UsageError if it cannot read the text.
using FlagTarget =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, float*, double*, std::string*,
                 std::filesystem::path*, std::optional<int>*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::vector<int>*, std::vector<std::string>*, EnumTarget,
                 std::function<void(const std::string&)>>;

// Returns why a value is none of a flag's choices, and what to type; "" if it knows no more than
// the choices.
using ExplainName = std::string (*)(std::string_view value);

// FlagRules restrict the values of a flag. Callers name only the rules that apply, with designated
// initialisers.
struct FlagRules {
  std::string value;  // the placeholder in --help; "" derives it from the type
  // A unit such as "seconds": --help shows SECONDS, and messages say "seconds" for "a number".
  std::string unit;
  std::string default_text;     // describes the default; "" shows the target's value, if any
  std::optional<double> least;  // numbers below this limit are refused
  std::optional<double> most;   // numbers above this limit are refused
  std::optional<double> above;  // numbers up to this limit are refused
  std::string example;          // a value that the message for a refused number shows
  // The texts that are accepted; empty accepts any text. "file:NET.json" accepts any text that
  // begins with "file:".
  Names choices;
  ExplainName explain = nullptr;  // is called for a value that is none of the choices
  std::vector<std::string> excludes;
  std::string needs;           // a flag that must be given too
  char separator = '\0';       // separates the elements of a vector
  bool repeats = false;        // a vector collects the values of all occurrences
  bool several_words = false;  // a vector takes all words up to the next flag
  bool required = false;
  bool hidden = false;  // the flag is left out of --help
  std::string refusal;  // why the flag is an error; empty: it is none
};

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

// Returns the names in a table, such as the table of optimizers, as the choices of a flag.
template <typename Row>
Names names_of(std::span<const Row> rows) {
  Names names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

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
