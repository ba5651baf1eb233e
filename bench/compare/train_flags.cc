#include "bench/compare/train_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "deploy/cli/command_line.h"
#include "deploy/cli/names.h"
#include "models/base/errors.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate::bench {
namespace {

std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

// Returns the row of a flag, such as "--epochs"; null for a word that is no flag of train.
const TrainFlag* find_row(std::string_view flag) {
  static const TrainFlag kHelp = {.name = "--help",
                                  .in_comparison = {.use = InComparison::kRefused,
                                                    .advice = "see syncopate train --help",
                                                    .plan_advice = "see syncopate train --help"}};
  return flag == kHelp.name || flag == "-h" ? &kHelp : find_train_flag(flag);
}

bool is_given_elsewhere(const TrainFlag& row) {
  return row.in_comparison.use == InComparison::kSetByCompare ||
         row.in_comparison.use == InComparison::kSetByVariant ||
         row.in_comparison.use == InComparison::kRefused;
}

bool is_neutral(const TrainFlag& row) { return row.in_comparison.use == InComparison::kNeutral; }

// Returns what to type in place of a flag that compare sets or refuses.
std::string instead_of(const TrainFlag& row, SharedBy command) {
  if (command == SharedBy::kCompare) {
    return fmt::format("{}; {}",
                       row.in_comparison.use == InComparison::kRefused
                           ? "compare does not take it"
                           : "compare sets it for each run",
                       row.in_comparison.advice);
  }
  if (!row.in_comparison.plan_advice.empty()) return std::string(row.in_comparison.plan_advice);
  return "plan trains its rows once, to --target-accuracy; leave it out";
}

// Throws UsageError unless `name`, without dashes, is a flag of train that a variant may have.
void require_flag_of_variant(const std::string& name, SharedBy command) {
  const std::string flag = "--" + name;
  const TrainFlag* const row = find_row(flag);
  const bool is_of_variant = row != nullptr && command == SharedBy::kCompare &&
                             row->in_comparison.use == InComparison::kSetByVariant;
  if (row != nullptr && is_given_elsewhere(*row) && !is_of_variant) {
    throw UsageError(fmt::format("{}: {}", row->name, instead_of(*row, command)));
  }
  if (row != nullptr) return;
  std::vector<std::string_view> known;
  for (const TrainFlag& other : train_flags()) {
    if (!is_given_elsewhere(other)) known.push_back(other.name);
  }
  const auto meant =
      flag_meant_by("--" + name.substr(std::min(name.find_first_not_of('-'), name.size())), known);
  const std::string text(meant.value_or(""));
  throw UsageError(fmt::format(
      "train has no flag \"{}\"; {}", name,
      meant ? fmt::format("did you mean {}?", text.substr(text.starts_with("--") ? 2 : 0))
            : "syncopate train --help lists its flags"));
}

}  // namespace

bool SharedTrainFlags::has(const std::string& flag) const {
  return std::ranges::find(given, flag) != given.end();
}

std::vector<std::string> parse_flags_in_braces(const std::string& text, SharedBy command) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const bool has_digit = !part.empty() && std::isdigit(static_cast<unsigned char>(part[0])) != 0;
    if (has_digit && !words.empty() && words.back().find('=') != std::string::npos) {
      words.back() += "," + part;
      continue;
    }
    if (part.empty() || part.front() == '=') {
      throw UsageError("expected flags of train in the braces, as in {learning-rate=0.1}");
    }
    const std::string name = name_in(part);
    require_flag_of_variant(name, command);
    const auto is_same = [&](const std::string& word) { return name_in(word) == "--" + name; };
    if (std::ranges::any_of(words, is_same)) {
      throw UsageError(name + " is given twice; give it once");
    }
    words.push_back("--" + part);
  }
  return words;
}

SharedTrainFlags add_flags(const SharedTrainFlags& shared, const std::vector<std::string>& words,
                           const std::string& label) {
  if (words.empty()) return shared;
  std::vector<std::string> all = shared.words;
  all.insert(all.end(), words.begin(), words.end());
  try {
    return parse_shared_train_flags(all, shared.command);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", label, error.what()));
  }
}

std::vector<RestFlag> shared_rest_flags(SharedBy command) {
  std::vector<RestFlag> flags = train_rest_flags();
  for (RestFlag& flag : flags) {
    const TrainFlag* const row = find_row(flag.name);
    if (row != nullptr && is_given_elsewhere(*row)) flag.instead = instead_of(*row, command);
  }
  return flags;
}

SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words, SharedBy command) {
  SharedTrainFlags shared;
  shared.command = command;
  shared.words = words;
  for (const std::string& word : words) {
    const std::string flag = name_in(word);
    const TrainFlag* const row = find_row(flag);
    if (row != nullptr && is_given_elsewhere(*row)) {
      throw UsageError(fmt::format("{} after --: {}", flag, instead_of(*row, command)));
    }
    if (flag.starts_with("--")) shared.given.push_back(flag);
  }
  shared.options = parse_shared_train(words);
  return shared;
}

std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label, bool is_virtual) {
  for (const TrainFlag& row : train_flags()) {
    if (!shared.has(row.name) || row.applies_to(run) || (is_virtual && is_neutral(row))) continue;
    return fmt::format("{} {}: not applicable to {}; leave out the flag or the variant", row.name,
                       text_of(run, row.name), label);
  }
  return "";
}

void require_virtual(const SharedTrainFlags& shared, const Variant& variant) {
  const SharedTrainFlags flags = add_flags(shared, variant.flags, variant.label);
  for (const std::string& flag : flags.given) {
    const TrainFlag* const row = find_row(flag);
    check(row != nullptr, "the table has every flag of train");
    const InComparison& rule = row->in_comparison;
    const bool is_refused = rule.is_refused != nullptr
                                ? rule.is_refused(flags.options, variant.workers)
                                : rule.use == InComparison::kRealOnly;
    if (is_refused) {
      throw UsageError(fmt::format("{} {}: not available under the virtual clock: {}", flag,
                                   text_of(flags.options, flag), rule.advice));
    }
    if (rule.use == InComparison::kOpensData && variant.has_flag(flag)) {
      throw UsageError(
          fmt::format("{}: under the virtual clock all variants read one data set; give {} after "
                      "--, for all of them",
                      variant.label, flag));
    }
  }
}

void require_flags_of_replay(const SharedTrainFlags& shared) {
  for (const std::string& flag : shared.given) {
    const TrainFlag* const row = find_row(flag);
    check(row != nullptr, "the table has every flag of train");
    const InComparison& rule = row->in_comparison;
    if (rule.use == InComparison::kOpensData || rule.is_for_replay) continue;
    throw UsageError(fmt::format(
        "{} after --: --replay computes what the job of the record computed; leave it out", flag));
  }
}

bool has_own_data(const Variant& variant) {
  return std::ranges::any_of(train_flags(), [&](const TrainFlag& row) {
    return row.in_comparison.use == InComparison::kOpensData && variant.has_flag(row.name);
  });
}

DataOptions data_options(const SharedTrainFlags& shared, const std::filesystem::path& cache_dir) {
  const std::filesystem::path& given = shared.options.cache_dir;
  DataOptions options{
      .cache_dir = given.empty() ? cache_dir : given, .seed = 1, .image = shared.options.image};
  options.image.cache_dir = given;
  return options;
}

std::string neutral_flags_note(const SharedTrainFlags& shared,
                               const std::vector<Variant>& variants) {
  std::vector<std::string_view> given;
  for (const TrainFlag& row : train_flags()) {
    const auto has = [&](const Variant& variant) { return variant.has_flag(row.name); };
    const bool is_given = shared.has(row.name) || std::ranges::any_of(variants, has);
    // Values that the virtual clock refuses are refused before, so the given ones change nothing.
    if (is_given && is_neutral(row)) given.push_back(row.name);
  }
  if (given.empty()) return "";
  return fmt::format("{} {} neither weights nor times under the virtual clock",
                     fmt::join(given, ", "), given.size() == 1 ? "changes" : "change");
}

}  // namespace syncopate::bench
