#include "bench/compare/train_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "deploy/cli/command_line.h"
#include "deploy/cli/names.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

struct OwnedFlag {
  std::string_view flag;
  std::string_view instead;
};

constexpr std::string_view kVariants = "give it in --strategies, as in parameter-server:ssp:2";
constexpr std::string_view kWorkers = "compare starts the workers: give --workers before the --";
constexpr std::string_view kEvaluations = "give --evaluations before the --";
constexpr std::string_view kToTheEnd =
    "compare trains every variant to the end of its budget, and evaluates then";
constexpr std::string_view kFolder = "each run keeps its files in the folder of --report";

constexpr std::array kOwned = {
    OwnedFlag{"--model", "give it before the --"},
    OwnedFlag{"--data", "give it before the --"},
    OwnedFlag{"--split", "variants are compared on the splits that the data have"},
    OwnedFlag{"--batch-size-per-replica", "give it before the --"},
    OwnedFlag{"--accumulate", "give a larger --batch-size-per-replica before the --"},
    OwnedFlag{"--batch-size", "give --batch-size-per-replica before the --"},
    OwnedFlag{"--epochs", "give it before the --"},
    OwnedFlag{"--steps", "give --budget updates --updates N before the --"},
    OwnedFlag{"--max-seconds", "give --budget seconds --seconds S before the --"},
    OwnedFlag{"--seed", "give --seeds N and --first-seed S before the --"},
    OwnedFlag{"--strategy", "name it in --strategies"},
    OwnedFlag{"--consistency", kVariants},
    OwnedFlag{"--max-staleness", kVariants},
    OwnedFlag{"--backup-workers", "give it in --strategies, as in parameter-server:sync+backup:1"},
    OwnedFlag{"--staleness-rule", "give it in --strategies, as in parameter-server:async+inverse"},
    OwnedFlag{"--replicas", kWorkers},
    OwnedFlag{"--rank", kWorkers},
    OwnedFlag{"--world-size", kWorkers},
    OwnedFlag{"--rendezvous", kWorkers},
    OwnedFlag{"--nonce", kWorkers},
    OwnedFlag{"--role", kWorkers},
    OwnedFlag{"--servers", "give it before the --"},
    OwnedFlag{"--service-time", "give it before the --"},
    OwnedFlag{"--slow", "give it before the --"},
    OwnedFlag{"--pause", "give it before the --"},
    OwnedFlag{"--link-delay", "give it before the --"},
    OwnedFlag{"--link-rate", "give it before the --"},
    OwnedFlag{"--eval-every", kEvaluations},
    OwnedFlag{"--eval-every-steps", kEvaluations},
    OwnedFlag{"--eval-when",
              "compare evaluates after training, so that evaluations take no time from it"},
    OwnedFlag{"--stop-at", kToTheEnd},
    OwnedFlag{"--early-stop", kToTheEnd},
    OwnedFlag{"--reduce-on-plateau", kToTheEnd},
    OwnedFlag{"--keep-best", kToTheEnd},
    OwnedFlag{"--log-every", kEvaluations},
    OwnedFlag{"--metrics", kFolder},
    OwnedFlag{"--checkpoint-dir", kFolder},
    OwnedFlag{"--checkpoint-every", kFolder},
    OwnedFlag{"--keep-checkpoints", kFolder},
    OwnedFlag{"--snapshot-every", kFolder},
    OwnedFlag{"--resume", "compare with the same --report continues by itself"},
    OwnedFlag{"--record", "every run would write to it; record a single run with syncopate launch"},
    OwnedFlag{"--config", "give its flags themselves"},
    OwnedFlag{"--help", "see syncopate train --help"},
    OwnedFlag{"-h", "see syncopate train --help"}};

std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

// Throws UsageError unless `name`, without dashes, is a flag of train that a variant may have.
void require_flag_of_variant(const std::string& name) {
  const std::string flag = "--" + name;
  const auto owned = std::ranges::find(kOwned, std::string_view(flag), &OwnedFlag::flag);
  if (owned != kOwned.end()) {
    throw UsageError(fmt::format("compare sets {} for each run; {}", owned->flag, owned->instead));
  }
  std::vector<std::string_view> known;
  for (const TrainOptionRow& row : train_option_rows()) {
    if (std::ranges::find(kOwned, row.name, &OwnedFlag::flag) == kOwned.end()) {
      known.push_back(row.name);
    }
  }
  if (std::ranges::find(known, flag) != known.end()) return;
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

std::vector<std::string> parse_flags_in_braces(const std::string& text) {
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
    require_flag_of_variant(name);
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
    return parse_shared_train_flags(all);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", label, error.what()));
  }
}

SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words) {
  SharedTrainFlags shared;
  shared.words = words;
  for (const std::string& word : words) {
    const std::string flag = name_in(word);
    const auto owned = std::ranges::find(kOwned, std::string_view(flag), &OwnedFlag::flag);
    if (owned != kOwned.end()) {
      throw UsageError(
          fmt::format("{} after --: compare sets it for each run; {}", flag, owned->instead));
    }
    if (flag.starts_with("--")) shared.given.push_back(flag);
  }
  shared.options = parse_shared_train(words);
  return shared;
}

std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label) {
  for (const TrainOptionRow& row : train_option_rows()) {
    if (!shared.has(std::string(row.name))) continue;
    if (row.applies_to(run)) continue;
    return fmt::format("{} {}: not applicable to {}; leave out the flag or the variant", row.name,
                       text_of(run, row.name), label);
  }
  return "";
}

}  // namespace syncopate::bench
