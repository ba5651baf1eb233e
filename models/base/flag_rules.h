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

// The target of a flag that sets an enumeration with names (models/base/enum_names.h). The flag
// takes `names`, and `--help` shows `value` as the default.
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

// The target of a flag with a whole number that is stored in another unit.
struct ScaledTarget {
  std::int64_t* value;
  std::int64_t unit;  // 1 on the command line is stored as this number
};

// A FlagTarget says where the value of a flag is stored. A bool becomes true if the flag is given.
// A time is given in seconds on the command line. A function is called with the text of the value,
// once per occurrence if the flag may be repeated; it throws UsageError if it cannot read the text.
using FlagTarget =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, float*, double*, std::string*,
                 std::filesystem::path*, std::optional<int>*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::chrono::milliseconds*, std::vector<int>*,
                 std::vector<std::string>*, EnumTarget, ScaledTarget,
                 std::function<void(const std::string&)>>;

// Returns the stored value as text for the command line. Returns nullopt for an empty text or list,
// a bool that is false, and a function.
std::optional<std::string> text_of(const FlagTarget& target);

// A function that explains why `value` is not among a flag's choices and what to type instead. It
// returns "" if it has nothing to add to the list of choices.
using ExplainName = std::string (*)(std::string_view value);

// FlagRules restrict the values of a flag. Callers name only the rules that apply, with designated
// initialisers.
struct FlagRules {
  std::string value;  // the placeholder in --help; "" derives it from the type
  // The unit of a number, such as "seconds": --help shows SECONDS as the placeholder, and messages
  // say "expected seconds" in place of "expected a number".
  std::string unit;
  std::string default_text;     // describes the default; "" shows the target's value, if any
  std::optional<double> least;  // numbers below this limit are refused
  std::optional<double> most;   // numbers above this limit are refused
  std::optional<double> above;  // numbers below or equal to this limit are refused
  std::string example;          // a valid value, shown in the message for a refused number
  // The texts that are accepted; if empty, any text is accepted. "file:NET.json" accepts any text
  // that begins with "file:".
  Names choices;
  ExplainName explain = nullptr;  // called for a value that is not among the choices
  std::string bare;  // the value of a flag that is given without one; "": a value must follow
  std::vector<std::string> excludes;
  std::string needs;           // another flag that must be given, too
  char separator = '\0';       // separates the elements of a vector
  bool repeats = false;        // the flag may be repeated; a vector collects all values
  bool several_words = false;  // the flag takes all words up to the next flag, for a vector
  bool required = false;
  bool hidden = false;  // the flag is left out of --help
  std::string refusal;  // why giving the flag is an error; empty: it is allowed
};

// Returns the names in a table, such as the table of optimizers, as the choices of a flag.
template <typename Row>
Names names_of(std::span<const Row> rows) {
  Names names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace syncopate
