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

// A flag that may be used after `--`.
struct RestFlag {
  std::string name;  // such as "--epochs"
  bool is_switch = false;
  // "" for an allowed flag. Otherwise the flag is refused, before and after `--`, and this text is
  // the end of the error message: why the flag is refused and what to type instead.
  std::string instead{};
};

// Declares the flags of one command and parses arguments. The targets of the flags must outlive the
// calls of parse(). One thread only.
class FlagSet {
 public:
  // Makes a set without flags. command: the full name, such as "syncopate train". summary: what the
  // command does, for --help. footer: the text at the end of --help.
  FlagSet(std::string command, std::string summary, std::string footer = "");

  // Sets the heading in --help for the flags that are added next.
  void begin_group(std::string title) { group_ = std::move(title); }
  // Adds a flag. name: such as "--epochs", or "DIR" for a value that is given by its position.
  // help: a plain phrase, with a unit, that says what the flag does; --help adds the choices and
  // the default to this phrase.
  void add(std::string name, FlagTarget target, std::string help, FlagRules rules = {});
  // Adds --config FILE. The file has a line NAME = VALUE for each flag; a flag on the command line
  // takes precedence.
  void add_config();
  // Makes parse() store the words after `--` in `words`. usage: the text for these words in the
  // usage line, such as "[FLAGS OF train]". what: a noun for the words, such as "flags of train".
  // flags: the flags that may be used after `--`; if one of these flags is used before `--`,
  // parse() refuses it and shows the right command line. command: the word that must follow `--`
  // first, such as "train"; "" if there is no such word.
  void take_rest(std::vector<std::string>& words, std::string usage, std::string what,
                 std::vector<RestFlag> flags, std::string command = "");
  // Makes parse() refuse a declared flag with the error "FLAG: WHY", and removes the flag from
  // --help.
  void refuse(std::string_view flag, std::string why);
  // Makes parse() skip flags that are not declared, and their values.
  void skip_unknown() { skips_unknown_ = true; }
  void set_footer(std::string footer) { footer_ = std::move(footer); }

  // Parses the arguments and stores the values. Returns the text of --help if the arguments contain
  // --help, else nullopt. Throws UsageError for an unknown flag, with a suggestion, and for a
  // refused value.
  std::optional<std::string> parse(std::span<const std::string> arguments);

  std::string help() const;
  // True if the parsed arguments contained the flag.
  bool has(std::string_view flag) const;
  // Returns a flag and its value as the user typed them, such as "--link-rate 1gbit". The flag must
  // have been given.
  std::string as_given(std::string_view flag) const;
  // Throws UsageError "FLAG requires WHAT" if the flag was given but `holds`, the condition, is
  // false.
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
