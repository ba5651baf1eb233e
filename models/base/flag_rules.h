// A flag of a command line as data: where its value is stored, and which values it takes. Parsing
// and --help are in deploy/cli.
#pragma once

#include <chrono>
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

// A whole number that is stored in another unit than the flag has.
struct ScaledTarget {
  std::int64_t* value;
  std::int64_t unit;  // what 1 on the command line stands for
};

// A FlagTarget says where the value of a flag is stored. A bool becomes true if the flag is given.
// A time is in seconds on the command line. A function is called with the text, for each value of a
// flag that may be repeated, and throws UsageError if it cannot read the text.
using FlagTarget =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, float*, double*, std::string*,
                 std::filesystem::path*, std::optional<int>*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::chrono::milliseconds*, std::vector<int>*,
                 std::vector<std::string>*, EnumTarget, ScaledTarget,
                 std::function<void(const std::string&)>>;

// Returns the value that is stored, as the command line takes it; nothing for an empty text or
// list, a switch that is off and a function.
std::optional<std::string> text_of(const FlagTarget& target);

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

// Returns the names in a table, such as the table of optimizers, as the choices of a flag.
template <typename Row>
Names names_of(std::span<const Row> rows) {
  Names names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace syncopate
