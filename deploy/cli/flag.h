// One flag of a command line: where its value goes, which values it takes, and how --help shows it.
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

namespace syncopate {

using Names = std::vector<std::string_view>;

// Where the value of a flag is stored. A bool is set by the flag alone; a function is called with
// the text and throws UsageError for a text that it cannot read.
using FlagTarget =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, float*, double*, std::string*,
                 std::filesystem::path*, std::optional<int>*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::vector<int>*, std::vector<std::string>*,
                 std::function<void(const std::string&)>>;

// Designated initialisers name the rules that apply.
struct FlagRules {
  std::string value;            // the placeholder in --help; "": by the type
  std::string unit;             // "seconds": the placeholder, and the noun in messages
  std::string default_text;     // in words; "": the target's value, if it has one
  std::optional<double> least;  // numbers below it are refused
  std::optional<double> most;   // numbers above it are refused
  std::optional<double> above;  // numbers up to it are refused
  std::string example;          // shown by the message for a number that is refused
  Names choices;                // the texts that are accepted; empty: any
  std::vector<std::string> excludes;
  std::string needs;           // another flag, without which this one is refused
  char separator = '\0';       // between the elements of a vector
  bool repeats = false;        // a vector collects the values of all occurrences
  bool several_words = false;  // a vector takes all words up to the next flag
  bool required = false;
  bool hidden = false;  // not shown by --help
};

struct Flag {
  std::string name;  // "--epochs"; a second spelling after a comma; "DIR": by its position
  FlagTarget target;
  std::string help;  // a noun phrase
  FlagRules rules;
  std::string group;
  std::vector<std::string> words{};  // as they were typed
  bool is_given = false;

  bool is_switch() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const;
  // "--epochs" of "--epochs,-e".
  std::string first_name() const { return name.substr(0, name.find(',')); }
};

// Stores flag.words in its target. Throws UsageError, which names the flag, the text, what was
// expected and, for a slip such as a decimal comma, the number that was probably meant.
void store_value(const Flag& flag);

// "INT", "FILE", "HOST:PORT"; empty for a switch.
std::string placeholder_of(const Flag& flag);
// The value that a run has without the flag, as text; empty: there is none.
std::string default_of(const Flag& flag);

// Throws UsageError unless `value` is one of `names`, with the name that was probably meant.
void require_name(std::string_view flag, const std::string& value, const Names& names);

// One text of a flag that has an enumeration as its value.
template <typename Value>
struct Choice {
  std::string_view name;
  Value value;
};
template <typename Value>
Choice(std::string_view, Value) -> Choice<Value>;

// The names of a table's rows.
template <typename Row>
Names names_of(std::span<const Row> rows) {
  Names names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

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
