#include "deploy/cli/flag_set.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "deploy/cli/flag.h"
#include "deploy/cli/names.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::string_view kConfig = "--config";

std::string joined_lines(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Returns the file that the error is about. CLI11's message begins with it: "FILE was not readable
// (missing?)".
std::string file_name_of(const CLI::FileError& error) {
  const std::string message = joined_lines(error.what());
  return message.substr(0, message.rfind(" was not readable"));
}

// Skips the mark of UTF-8 that editors write. Throws UsageError for the mark of UTF-16.
void skip_byte_order_mark(std::istream& input) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string start;
  for (char letter = 0; start.size() < kMark.size() && input.get(letter);) start += letter;
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    throw UsageError(
        "--config: expected text in UTF-8, found UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE "
        "> NEW");
  }
  if (start == kMark) return;
  input.clear();
  input.seekg(0);
}

bool is_false(const CLI::ConfigItem& item) {
  if (item.inputs.size() != 1) return false;
  try {
    return CLI::detail::to_flag_value(item.inputs.front()) < 0;
  } catch (const std::invalid_argument&) {
    return false;  // the text is no bool; CLI11 itself refuses it later
  }
}

}  // namespace

// Reads the file of --config after the command line. Drops lines for flags that the command line
// excludes, and switches that are set to false.
class ConfigReader final : public CLI::ConfigTOML {
 public:
  ConfigReader(const FlagSet& flags, const CLI::App& app) : flags_(flags), app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    skip_byte_order_mark(input);
    std::vector<CLI::ConfigItem> lines = CLI::ConfigTOML::from_config(input);
    std::erase_if(lines, [&](const CLI::ConfigItem& item) { return !is_used(item); });
    return lines;
  }

 private:
  bool is_used(const CLI::ConfigItem& item) const {
    if (!item.parents.empty()) {
      throw UsageError(
          fmt::format("--config: section [{}]: expected lines NAME = VALUE and no sections",
                      item.parents.front()));
    }
    if (item.name.starts_with("--")) {
      throw UsageError(fmt::format("--config: {}: write the name without dashes: {} = VALUE",
                                   item.name, item.name.substr(2)));
    }
    if (item.name.find_first_of(" :\t") != std::string::npos) {
      throw UsageError(fmt::format("--config: line '{}': expected NAME = VALUE", item.name));
    }
    const Flag* const flag = flags_.find("--" + item.name);
    if (flag == nullptr) {
      throw UsageError(fmt::format("--config: {}: no such flag{}", item.name,
                                   flags_.suggest_flag("--" + item.name)));
    }
    if (flag->is_switch() && is_false(item)) return false;
    if (!flag->is_list() && item.inputs.size() > 1) {
      throw UsageError(fmt::format(
          "--config: {}: expected one value, found {}; put quotes around a value with blanks",
          item.name, item.inputs.size()));
    }
    return std::ranges::none_of(flags_.flags(), [&](const Flag& other) {
      const bool is_excluded = std::ranges::count(flag->rules.excludes, other.first_name()) > 0 ||
                               std::ranges::count(other.rules.excludes, flag->first_name()) > 0;
      return is_excluded && app_.get_option(other.first_name())->count() > 0;
    });
  }

  const FlagSet& flags_;
  const CLI::App& app_;
};

FlagSet::FlagSet(std::string command, std::string summary, std::string footer)
    : command_(std::move(command)), summary_(std::move(summary)), footer_(std::move(footer)) {}

void FlagSet::add(std::string name, FlagTarget target, std::string help, FlagRules rules) {
  if (const auto* const value = std::get_if<EnumTarget>(&target)) rules.choices = value->names;
  flags_.push_back({std::move(name), std::move(target), std::move(help), std::move(rules), group_});
}

void FlagSet::add_config() {
  has_config_ = true;
  add(std::string(kConfig), [](const std::string& /*file*/) {},
      "file with flags; each line is NAME = VALUE, where NAME is a flag without its leading dashes",
      {.value = "FILE", .default_text = "none"});
}

void FlagSet::take_rest(std::vector<std::string>& words, std::string usage, std::string what,
                        std::vector<RestFlag> flags, std::string command) {
  rest_ = &words;
  rest_usage_ = std::move(usage);
  rest_name_ = std::move(what);
  rest_flags_ = std::move(flags);
  rest_command_ = std::move(command);
}

void FlagSet::refuse(std::string_view flag, std::string why) {
  const auto found = std::ranges::find(flags_, flag, &Flag::first_name);
  check(found != flags_.end(), "a flag is refused that was not declared");
  found->rules.hidden = true;
  found->rules.refusal = std::move(why);
}

std::optional<std::string> FlagSet::parse(std::span<const std::string> arguments) {
  auto own = arguments;
  if (rest_ != nullptr) {
    const auto dashes = std::ranges::find(arguments, "--");
    own = arguments.first(static_cast<std::size_t>(dashes - arguments.begin()));
    if (dashes != arguments.end()) rest_->assign(dashes + 1, arguments.end());
    refuse_misplaced(own);
  }
  try {
    parse_words(std::vector<std::string>(own.rbegin(), own.rend()));
  } catch (const CLI::CallForHelp&) {
    return help();
  } catch (const CLI::FileError& error) {
    throw UsageError(fmt::format(
        "--config: {} cannot be read; expected a file of lines NAME = VALUE", file_name_of(error)));
  } catch (const CLI::ConfigError& error) {
    throw UsageError(
        fmt::format("--config: {}; expected lines NAME = VALUE, the name a flag without its dashes "
                    "({} --help lists them)",
                    joined_lines(error.what()), command_));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string name =
        std::string(error.what()).substr(0, std::string(error.what()).find(':'));
    const Flag* const flag = find(name);
    if (flag == nullptr) throw UsageError(joined_lines(error.what()));
    throw UsageError(
        fmt::format("{}: its value is missing; expected {} {}", name, name, placeholder_of(*flag)));
  } catch (const CLI::ParseError& error) {
    throw UsageError(
        fmt::format("{} ({} --help lists the flags)", joined_lines(error.what()), command_));
  }
  for (const Flag& flag : flags_) {
    if (flag.is_given) store_value(flag);
  }
  check_together();
  return std::nullopt;
}

void FlagSet::parse_words(std::vector<std::string> arguments) {
  CLI::App app(summary_, command_);
  app.allow_extras();  // lets the message for an unknown flag suggest a known one
  std::vector<std::pair<Flag*, CLI::Option*>> declared;
  for (Flag& flag : flags_) {
    if (flag.name == kConfig) {
      app.set_config(flag.name);
      continue;
    }
    CLI::Option* option = nullptr;
    if (flag.is_switch()) {
      option = app.add_flag(flag.name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else {
      option = app.add_option(flag.name, [](const CLI::results_t& /*words*/) { return true; });
      option->multi_option_policy(flag.is_list() ? CLI::MultiOptionPolicy::TakeAll
                                                 : CLI::MultiOptionPolicy::TakeLast);
      if (flag.is_list()) option->expected(1, CLI::detail::expected_max_vector_size);
      option->allow_extra_args(flag.rules.several_words);
      if (!flag.rules.bare.empty()) option->expected(0, 1);
    }
    declared.emplace_back(&flag, option);
  }
  if (has_config_) app.config_formatter(std::make_shared<ConfigReader>(*this, app));
  app.parse(std::move(arguments));
  for (const auto& [flag, option] : declared) {
    flag->is_given = option->count() > 0;
    flag->words = option->results();
    const bool is_bare = flag->words.empty() || flag->words.back().empty();
    if (flag->is_given && is_bare && !flag->rules.bare.empty()) flag->words = {flag->rules.bare};
    if (flag->is_given && !flag->rules.refusal.empty()) {
      throw UsageError(fmt::format("{}: {}", flag->first_name(), flag->rules.refusal));
    }
    if (!flag->is_given || flag->is_switch()) continue;
    const bool collects = flag->rules.repeats || flag->rules.several_words;
    if (!collects) flag->words.erase(flag->words.begin(), flag->words.end() - 1);
    if (find(flag->words.back()) != nullptr) {
      throw UsageError(fmt::format("{}: its value is missing; {} stands in its place",
                                   flag->first_name(), flag->words.back()));
    }
  }
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty() || skips_unknown_) return;
  const std::string typed = unknown.front().substr(0, unknown.front().find('='));
  if (typed.starts_with('-')) {
    throw UsageError(fmt::format("unknown flag {}{}", typed, suggest_flag(typed)));
  }
  if (rest_ == nullptr) {
    throw UsageError(fmt::format("unexpected argument {}{}", typed, suggest_flag(typed)));
  }
  throw UsageError(fmt::format("unexpected argument {0}; put -- before {0}", typed));
}

void FlagSet::check_together() const {
  for (const Flag& flag : flags_) {
    if (flag.rules.required && !flag.is_given) {
      const std::string form = flag.name.starts_with('-') ? placeholder_of(flag) : flag.help;
      throw UsageError(fmt::format("{} is missing; give {} {}", flag.name,
                                   flag.name.starts_with('-') ? flag.name : "the", form));
    }
    if (!flag.is_given) continue;
    for (const std::string& other : flag.rules.excludes) {
      if (!has(other)) continue;
      throw UsageError(fmt::format("{} and {}: leave one of them out", other, flag.first_name()));
    }
    if (!flag.rules.needs.empty())
      require(flag.first_name(), has(flag.rules.needs), flag.rules.needs);
  }
}

std::string FlagSet::help() const {
  return help_text(
      {.command = command_, .summary = summary_, .rest = rest_usage_, .footer = footer_}, flags_);
}

bool FlagSet::has(std::string_view flag) const {
  const Flag* const found = find(flag);
  check(found != nullptr, "a flag is asked for that was not declared");
  return found->is_given;
}

std::string FlagSet::as_given(std::string_view flag) const {
  const Flag* const found = find(flag);
  check(found != nullptr && found->is_given, "a flag was given");
  return fmt::format("{} {}", flag, found->words.back());
}

void FlagSet::require(std::string_view flag, bool holds, std::string_view what) const {
  if (holds || !has(flag)) return;
  throw UsageError(fmt::format("{} requires {}", flag, what));
}

const Flag* FlagSet::find(std::string_view name) const {
  const auto found = std::ranges::find_if(flags_, [&](const Flag& flag) {
    return flag.first_name() == name || (flag.name != flag.first_name() &&
                                         flag.name.substr(flag.first_name().size() + 1) == name);
  });
  return found == flags_.end() ? nullptr : &*found;
}

// Returns the flag of the words behind `--` that a word in front of it names; null: none.
const RestFlag* FlagSet::find_rest(std::string_view word) const {
  const std::string_view name = word.substr(0, word.find('='));
  const auto found = std::ranges::find(rest_flags_, name, &RestFlag::name);
  return found == rest_flags_.end() || find(name) != nullptr ? nullptr : &*found;
}

// Refuses flags in front of `--` that belong behind it, with the command line that was meant.
void FlagSet::refuse_misplaced(std::span<const std::string> arguments) const {
  std::string front = command_;
  std::string behind = rest_->empty() && !rest_command_.empty() ? " " + rest_command_ : "";
  for (const std::string& word : *rest_) behind += " " + shell_word(word);
  const RestFlag* first = nullptr;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    const RestFlag* const flag = find_rest(*word);
    std::string& line = flag == nullptr ? front : behind;
    line += " " + shell_word(*word);
    if (flag == nullptr) continue;
    if (!flag->instead.empty()) {
      throw UsageError(fmt::format("unknown flag {}: {}", flag->name, flag->instead));
    }
    if (first == nullptr) first = flag;
    const bool has_value = !flag->is_switch && word->find('=') == std::string::npos;
    if (has_value && std::next(word) != arguments.end()) line += " " + shell_word(*++word);
  }
  if (first == nullptr) return;
  throw UsageError(fmt::format("unknown flag {}; {} stand behind --: {} --{}", first->name,
                               rest_name_, front, behind));
}

std::string FlagSet::suggest_flag(std::string_view typed) const {
  std::vector<std::string> known;
  for (const Flag& flag : flags_) {
    if (!flag.rules.hidden && flag.name.starts_with("--")) known.push_back(flag.first_name());
  }
  const auto meant = flag_meant_by(typed, Names(known.begin(), known.end()));
  std::string text = meant ? fmt::format("; did you mean '{}'?", *meant) : ";";
  if (!meant && rest_ != nullptr) text += fmt::format(" {} stand behind --;", rest_name_);
  return text + fmt::format(" {} --help lists the flags", command_);
}

}  // namespace syncopate
