// The flags of one command: declared in the order in which --help shows them, parsed with one clear
// line for each mistake. The only part of the program that uses CLI11, which stays in the .cc file.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/cli/flag.h"

namespace syncopate {

// One thread only. Targets outlive the calls of parse().
class FlagSet {
 public:
  // command: "syncopate train". summary: what the command does. footer: what --help shows last.
  FlagSet(std::string command, std::string summary, std::string footer = "");

  // The heading of the flags that are added next.
  void begin_group(std::string title) { group_ = std::move(title); }
  // name: "--epochs", or "DIR" for a value by its position. help: a noun phrase with its unit; the
  // choices and the default are added to it.
  void add(std::string name, FlagTarget target, std::string help, FlagRules rules = {});
  // Adds --config FILE: a line NAME = VALUE for each flag, which the command line outranks.
  void add_config();
  // Takes the words behind `--`. usage: "[FLAGS OF train]". what: "flags of train".
  void take_rest(std::vector<std::string>& words, std::string usage, std::string what);
  void set_footer(std::string footer) { footer_ = std::move(footer); }

  // Stores the values. Returns the text of --help when the arguments ask for it. Throws UsageError
  // for an unknown flag, with the one that was probably meant, and for a value that is refused.
  std::optional<std::string> parse(std::span<const std::string> arguments);

  std::string help() const;
  // Whether the arguments had the flag.
  bool has(std::string_view flag) const;
  // Throws UsageError "FLAG requires WHAT" if the flag was given and `holds` is false.
  void require(std::string_view flag, bool holds, std::string_view what) const;
  const std::string& command() const { return command_; }
  const std::vector<Flag>& flags() const { return flags_; }

 private:
  friend class ConfigReader;

  const Flag* find(std::string_view name) const;
  void parse_words(std::vector<std::string> arguments);
  void check_together() const;
  std::string suggest_flag(std::string_view typed) const;

  std::string command_;
  std::string summary_;
  std::string footer_;
  std::string group_;
  std::vector<Flag> flags_;
  std::vector<std::string>* rest_ = nullptr;
  std::string rest_usage_;
  std::string rest_name_;
  bool has_config_ = false;
};

// Adds a flag whose value is one of an enumeration. `rows` outlive the calls of parse().
template <typename Value, std::size_t N>
void add_choice(FlagSet& flags, std::string name, Value& target,
                const std::array<Choice<Value>, N>& rows, std::string help, FlagRules rules = {}) {
  for (const Choice<Value>& row : rows) {
    rules.choices.push_back(row.name);
    if (row.value == target && rules.default_text.empty()) rules.default_text = row.name;
  }
  const auto store = [&target, &rows](const std::string& text) {
    for (const Choice<Value>& row : rows) {
      if (row.name == text) target = row.value;
    }
  };
  flags.add(std::move(name), store, std::move(help), std::move(rules));
}

}  // namespace syncopate
