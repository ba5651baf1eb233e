#include "deploy/cli/flag.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "deploy/cli/names.h"
#include "models/base/errors.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

[[noreturn]] void refuse(const Flag& flag, const std::string& text, const std::string& why) {
  throw UsageError(fmt::format("{} {}: {}", flag.first_name(), text.empty() ? "''" : text, why));
}

// Describes the numbers that the flag accepts, such as "a whole number from 1 to 100". `type_most`
// is the largest number of the flag's type; it appears only if the refused `value` is larger.
std::string describe_range(const Flag& flag, const std::string& value, bool is_whole,
                           double type_most) {
  const FlagRules& rules = flag.rules;
  std::string text = !rules.unit.empty() ? rules.unit : is_whole ? "a whole number" : "a number";
  const auto shown = [&](double number) {
    return is_whole ? fmt::format("{:.0f}", number) : fmt::format("{}", number);
  };
  if (rules.above) text += fmt::format(" above {}", shown(*rules.above));
  std::optional<double> most = rules.most;
  if (!most && is_whole && parse_number<double>(value).value_or(0.0) > type_most) most = type_most;
  if (rules.least && most) {
    text += fmt::format(" from {} to {}", shown(*rules.least), shown(*most));
  } else if (rules.least) {
    text += fmt::format(", at least {}", shown(*rules.least));
  }
  if (!rules.example.empty()) text += ", such as " + rules.example;
  return text;
}

// Returns "; did you mean 0.95?" if a flag's value has a decimal comma, is a percentage or should
// be a whole number; otherwise returns "".
std::string meant_number(const Flag& flag, const std::string& text, bool is_whole) {
  std::string with_point = text;
  std::ranges::replace(with_point, ',', '.');
  std::optional<double> number = parse_number<double>(with_point);
  const bool had_comma = with_point != text;
  if (!number || !std::isfinite(*number)) return "";
  const FlagRules& rules = flag.rules;
  const auto is_accepted = [&](double value) {
    return (!rules.least || value >= *rules.least) && (!rules.most || value <= *rules.most) &&
           (!rules.above || value > *rules.above) && std::abs(value) < 1e15 &&
           (!is_whole || value == std::round(value));
  };
  const bool is_percent = !is_whole && rules.most && *rules.most <= 1.0 && *number >= 2.0;
  if (is_percent) *number /= 100.0;
  const bool is_typing_error = had_comma || is_percent || is_whole;
  if (!is_typing_error || !is_accepted(*number)) return "";
  return is_whole ? fmt::format("; did you mean {:.0f}?", *number)
                  : fmt::format("; did you mean {}?", *number);
}

template <typename Number>
Number number_of(const Flag& flag, const std::string& text) {
  constexpr bool kIsWhole = std::is_integral_v<Number>;
  constexpr auto kTypeMost = static_cast<double>(std::numeric_limits<Number>::max());
  const std::optional<Number> number = parse_number<Number>(text);
  const FlagRules& rules = flag.rules;
  const auto value = static_cast<double>(number.value_or(Number{}));
  const bool is_accepted =
      number && std::isfinite(value) && (!rules.least || value >= *rules.least) &&
      (!rules.most || value <= *rules.most) && (!rules.above || value > *rules.above);
  if (is_accepted) return *number;
  if constexpr (std::is_same_v<Number, std::uint64_t>) {
    refuse(flag, text, "expected a whole number from 0 to 2^64 - 1");
  } else {
    refuse(flag, text,
           "expected " + describe_range(flag, text, kIsWhole, kTypeMost) +
               meant_number(flag, text, kIsWhole));
  }
}

std::string text_of(const Flag& flag, const std::string& text, bool is_path) {
  if (is_path && text.empty()) {
    throw UsageError(flag.first_name() + " is empty: expected a path");
  }
  const std::size_t tilde = text.starts_with("~/") ? 0 : text.find(":~/");
  if (tilde != std::string::npos) {
    std::string meant = text;
    meant.replace(tilde == 0 ? 0 : tilde + 1, 1, "$HOME");
    refuse(flag, text,
           "the shell expands ~ at the start of a word only; did you mean " + meant + "?");
  }
  const FlagRules& rules = flag.rules;
  if (!rules.choices.empty()) require_name(flag.first_name(), text, rules.choices, rules.explain);
  return text;
}

std::vector<std::string> elements_of(const Flag& flag) {
  if (flag.rules.separator == '\0') return flag.words;
  std::vector<std::string> elements;
  for (const std::string& word : flag.words) {
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = word.find(flag.rules.separator, begin);
      elements.push_back(word.substr(begin, end - begin));
      if (end == std::string::npos) break;
      begin = end + 1;
    }
  }
  return elements;
}

class Store {
 public:
  explicit Store(const Flag& flag) : flag_(flag), text_(flag.words.back()) {}

  void operator()(bool* value) const {
    if (text_ != "true" && text_ != "false") refuse(flag_, text_, "expected no value");
    *value = text_ == "true";
  }
  void operator()(std::string* value) const { *value = text_of(flag_, text_, false); }
  void operator()(std::filesystem::path* value) const { *value = text_of(flag_, text_, true); }
  void operator()(std::vector<std::string>* values) const {
    values->clear();
    for (const std::string& text : elements_of(flag_)) {
      if (text.empty() && flag_.rules.separator != '\0') {
        refuse(flag_, text_, fmt::format("expected {}, none of them empty", placeholder_of(flag_)));
      }
      values->push_back(text_of(flag_, text, false));
    }
  }
  void operator()(std::vector<int>* values) const {
    values->clear();
    for (const std::string& text : elements_of(flag_)) {
      values->push_back(number_of<int>(flag_, text));
    }
  }
  void operator()(const EnumTarget& target) const { target.store(text_of(flag_, text_, false)); }
  void operator()(const std::function<void(const std::string&)>& parse) const {
    for (const std::string& word : flag_.words) parse(text_of(flag_, word, false));
  }
  void operator()(std::chrono::milliseconds* value) const {
    *value = std::chrono::milliseconds(std::llround(1000.0 * number_of<double>(flag_, text_)));
  }
  void operator()(const ScaledTarget& target) const {
    *target.value = number_of<std::int64_t>(flag_, text_) * target.unit;
  }
  template <typename Number>
  void operator()(std::optional<Number>* value) const {
    *value = number_of<Number>(flag_, text_);
  }
  template <typename Number>
  void operator()(Number* value) const {
    *value = number_of<Number>(flag_, text_);
  }

 private:
  const Flag& flag_;
  const std::string& text_;
};

struct ShowType {
  std::string operator()(const bool* /*value*/) const { return ""; }
  std::string operator()(const std::string* /*value*/) const { return "TEXT"; }
  std::string operator()(const std::filesystem::path* /*value*/) const { return "PATH"; }
  std::string operator()(const std::vector<std::string>* /*value*/) const { return "TEXT,..."; }
  std::string operator()(const std::vector<int>* /*value*/) const { return "N,..."; }
  std::string operator()(const EnumTarget& /*target*/) const { return "NAME"; }
  std::string operator()(const ScaledTarget& /*target*/) const { return "N"; }
  std::string operator()(const std::chrono::milliseconds* /*value*/) const { return "X"; }
  std::string operator()(const std::function<void(const std::string&)>& /*parse*/) const {
    return "TEXT";
  }
  template <typename Number>
  std::string operator()(const std::optional<Number>* /*value*/) const {
    return std::is_integral_v<Number> ? "N" : "X";
  }
  template <typename Number>
  std::string operator()(const Number* /*value*/) const {
    return std::is_integral_v<Number> ? "N" : "X";
  }
};

constexpr std::size_t kDescriptionColumn = 34;

std::string description_of(const Flag& flag) {
  std::string text = flag.help;
  if (!flag.rules.choices.empty()) {
    text += fmt::format(": {}", fmt::join(flag.rules.choices, " | "));
  }
  if (flag.rules.required) return text + " (required)";
  const std::string shown =
      flag.rules.repeats && default_of(flag).empty() ? "none" : default_of(flag);
  if (!shown.empty()) text += fmt::format(" (default: {})", shown);
  if (flag.rules.repeats) text += "; may be repeated";
  return text;
}

std::string line_of(const Flag& flag) {
  std::string line = "  " + flag.first_name();
  if (flag.name.starts_with('-')) {
    const std::string placeholder = placeholder_of(flag);
    if (!placeholder.empty()) line += " " + placeholder;
  }
  if (line.size() + 2 > kDescriptionColumn) {
    line += "\n" + std::string(kDescriptionColumn, ' ');
  } else {
    line.resize(kDescriptionColumn, ' ');
  }
  return line + wrapped(description_of(flag), kDescriptionColumn, kDescriptionColumn) + "\n";
}

// Returns the names of the groups of flags, in the order of the first flag of each group.
std::vector<std::string> groups_of(const std::vector<Flag>& flags) {
  std::vector<std::string> groups;
  for (const Flag& flag : flags) {
    if (flag.rules.hidden) continue;
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  }
  return groups;
}

}  // namespace

bool Flag::is_list() const {
  return rules.repeats || std::holds_alternative<std::vector<int>*>(target) ||
         std::holds_alternative<std::vector<std::string>*>(target);
}

void store_value(const Flag& flag) { std::visit(Store(flag), flag.target); }

std::string placeholder_of(const Flag& flag) {
  if (flag.is_switch()) return "";
  if (!flag.rules.value.empty()) return flag.rules.value;
  if (!flag.rules.unit.empty()) {
    std::string upper = flag.rules.unit;
    std::ranges::transform(upper, upper.begin(), [](unsigned char letter) {
      return static_cast<char>(std::toupper(letter));
    });
    return upper;
  }
  if (!flag.rules.choices.empty()) return flag.is_list() ? "NAME,..." : "NAME";
  return std::visit(ShowType{}, flag.target);
}

std::string default_of(const Flag& flag) {
  if (!flag.rules.default_text.empty()) return flag.rules.default_text;
  return flag.is_switch() ? "" : text_of(flag.target).value_or("");
}

void require_name(std::string_view flag, const std::string& value, const Names& names,
                  ExplainName explain) {
  const auto accepts = [&](std::string_view name) {
    const std::size_t prefix = name.find(':') + 1;
    return name == value ||
           (prefix > 0 && value.size() > prefix && value.starts_with(name.substr(0, prefix)));
  };
  if (std::ranges::any_of(names, accepts)) return;
  const std::string why = explain == nullptr ? "" : explain(value);
  throw UsageError(
      fmt::format("{} {}: {}", flag, value.empty() ? "''" : value,
                  why.empty() ? "no such name" + suggest_value(flag, value, names) : why));
}

std::string wrapped(const std::string& text, std::size_t column, std::size_t indent) {
  std::string result;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool is_first = column == indent || result.empty();
    if (!is_first && column + 1 + word.size() > kHelpColumns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    if (end < text.size() && text[end] == '\n') {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    }
    begin = end + 1;
  }
  return result;
}

std::string help_text(const HelpFrame& frame, const std::vector<Flag>& flags) {
  std::string positions;
  for (const Flag& flag : flags) {
    if (!flag.rules.hidden && !flag.name.starts_with('-')) positions += " " + flag.name;
  }
  std::string text = wrapped(frame.summary, 0, 0) + "\n\n";
  text += fmt::format("Usage: {}{} [FLAGS]{}\n", frame.command, positions,
                      frame.rest.empty() ? "" : " -- " + frame.rest);
  for (const std::string& group : groups_of(flags)) {
    text += group.empty() ? "\n" : fmt::format("\n{}:\n", group);
    for (const Flag& flag : flags) {
      if (!flag.rules.hidden && flag.group == group) text += line_of(flag);
    }
  }
  if (!frame.footer.empty())
    text += "\n" + frame.footer + (frame.footer.ends_with('\n') ? "" : "\n");
  return text;
}

}  // namespace syncopate
