#include "bench/compare/train_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "deploy/cli/command_line.h"
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
constexpr std::string_view kFolder = "each run keeps its files in the folder of --report";

constexpr std::array kOwned = {
    OwnedFlag{"--model", "give it before the --"},
    OwnedFlag{"--data", "give it before the --"},
    OwnedFlag{"--batch-size-per-replica", "give it before the --"},
    OwnedFlag{"--batch-size", "give --batch-size-per-replica before the --"},
    OwnedFlag{"--epochs", "give it before the --"},
    OwnedFlag{"--steps", "give --budget updates --updates N before the --"},
    OwnedFlag{"--max-seconds", "give --budget seconds --seconds S before the --"},
    OwnedFlag{"--seed", "give --seeds N before the --, for seeds 1 to N"},
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

}  // namespace

SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words) {
  SharedTrainFlags shared;
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
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
    if (std::ranges::find(shared.given, row.name) == shared.given.end()) continue;
    if (row.applies_to(run)) continue;
    return fmt::format("{} {}: not applicable to {}; leave out the flag or the variant", row.name,
                       text_of(run, row.name), label);
  }
  return "";
}

}  // namespace syncopate::bench
