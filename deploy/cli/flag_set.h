// Declares and parses the flags of one command. --help shows the flags in the order of their
// declaration, and each mistake is reported in one clear line. This is the only part of the program
// that uses CLI11, which is included in the .cc file alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/cli/flag.h"

namespace syncopate {

// A flag of the words behind `--`.
struct RestFlag {
  std::string name;  // such as "--epochs"
  bool is_switch = false;
  std::string instead{};  // why it may not stand there either, and what to type; "" if it may
};

// A FlagSet holds the flags of one command. It may be used by one thread only. The targets of the
// flags outlive the calls of parse().
class FlagSet {
 public:
  // `command` is the full name, as in "syncopate train". `summary` says what the command does.
  // --help shows `footer` last.
  FlagSet(std::string command, std::string summary, std::string footer = "");

  // Sets the heading in --help of the flags that are added next.
  void begin_group(std::string title) { group_ = std::move(title); }
  // Adds a flag. `name` is "--epochs", or "DIR" for a value that is read by its position. `help`
  // says in one plain phrase, with a unit, what the flag does; the choices and the default are
  // added to it.
  void add(std::string name, FlagTarget target, std::string help, FlagRules rules = {});
  // Adds --config FILE. The file has a line NAME = VALUE for each flag; a flag on the command line
  // takes precedence.
  void add_config();
  // Makes parse() store the words behind `--` in `words`. `usage` is a text such as "[FLAGS OF
  // train]", `what` a noun such as "flags of train". `flags` are those that stand there: one of
  // them in front of `--` is refused with the right command line. `command`: the word in front of
  // them, such as "train"; "" if they stand alone.
  void take_rest(std::vector<std::string>& words, std::string usage, std::string what,
                 std::vector<RestFlag> flags, std::string command = "");
  // Makes a declared flag an error, "FLAG: WHY", and leaves it out of --help.
  void refuse(std::string_view flag, std::string why);
  // Makes parse() skip flags that are not declared, and their values.
  void skip_unknown() { skips_unknown_ = true; }
  void set_footer(std::string footer) { footer_ = std::move(footer); }

  // Parses the arguments and stores the values. Returns the text of --help if the arguments ask for
  // it. Throws UsageError for an unknown flag, with a suggestion, and for a refused value.
  std::optional<std::string> parse(std::span<const std::string> arguments);

  std::string help() const;
  // True if the parsed arguments contained the flag.
  bool has(std::string_view flag) const;
  // Returns a flag that was given as the user typed it, such as "--link-rate 1gbit".
  std::string as_given(std::string_view flag) const;
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
  const RestFlag* find_rest(std::string_view word) const;
  void refuse_misplaced(std::span<const std::string> arguments) const;

  std::string command_;
  std::string summary_;
  std::string footer_;
  std::string group_;
  std::vector<Flag> flags_;
  std::vector<std::string>* rest_ = nullptr;
  std::string rest_usage_;
  std::string rest_name_;
  std::vector<RestFlag> rest_flags_;
  std::string rest_command_;
  bool has_config_ = false;
  bool skips_unknown_ = false;
};

}  // namespace syncopate
