// The flags of train about rounds of local updates and the outer step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "worker/run/flags/train_flag.h"

namespace syncopate {
namespace {

constexpr std::int64_t kMostInRound = 1'000'000'000;
constexpr const char* kInWord = "give it in the name of a variant, such as local-sgd:diloco:8";
constexpr std::string_view kInDisplacementWord =
    "give it in the name of a variant, such as parameter-server:async+displacement:average:8";
constexpr InComparison kOfWord = {
    .use = InComparison::kSetByCompare, .advice = kInWord, .plan_advice = kInWord};
// A group is the replicas of one task.
constexpr InComparison kOfTask = {
    .use = InComparison::kRefused,
    .advice =
        "the replicas of one task average their values, and each worker of compare is a task "
        "of its own; use syncopate train with --replicas",
    .plan_advice =
        "the replicas of one task average their values, and each worker of plan is a "
        "task of its own; leave it out"};

constexpr TrainFlag::Need kRounds = {has_rounds, "--strategy local-sgd or --push displacement"};
bool exchanges_in_rounds(const TrainOptions& o) { return strategy_of(o).has_rounds; }
constexpr TrainFlag::Need kExchanges = {exchanges_in_rounds, "--strategy local-sgd"};
bool begins_with_sums(const TrainOptions& o) {
  return exchanges_in_rounds(o) && outer_rule_row(o.strategy.local.outer).begins_with_sums;
}
constexpr TrainFlag::Need kSums = {begins_with_sums, "--outer post-local"};

std::string outer_help() {
  std::string help =
      "change of the outer model at the end of a round, from the mean displacement, which is the "
      "way from the workers' values back to the start of the round (";
  for (const OuterRuleRow& row : outer_rules()) {
    if (&row != outer_rules().data()) help += "; ";
    help += std::string(row.name) + (row.has_number ? ":N: " : ": ") + std::string(row.help);
  }
  return help + ")";
}

// Returns the default of a constant for each outer step, such as "0 with average, 0.5 with slowmo".
std::string defaults_of(double OuterRuleOptions::*constant) {
  std::vector<std::string> texts;
  for (const OuterRuleRow& row : outer_rules()) {
    texts.push_back(fmt::format("{:g} with {}", row.defaults.*constant, row.name));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string names_with(bool OuterRuleOptions::*trait) {
  Names names;
  for (const OuterRuleRow& row : outer_rules()) {
    if (row.defaults.*trait) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace

std::vector<TrainFlag> local_update_flags() {
  return {
      {.name = "--push",
       .help =
           "what the workers of servers or of central-storage push (gradient: the gradient of each "
           "batch; displacement: what the worker's own optimizer changed in --sync-every steps, "
           "with which the servers make an outer step). With displacement, "
           "--max-staleness counts pushes; --steps counts the steps of all workers",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.strategy.local.push); },
       .needs = {{[](const TrainOptions& o) { return strategy_of(o).shares_variables(); },
                  "--strategy parameter-server or central-storage"},
                 {[](const TrainOptions& o) {
                    return o.strategy.consistency.consistency != ps::Consistency::kSync;
                  },
                  "--consistency async, ssp or quorum"}},
       .decides_updates = true,
       .in_comparison = {.use = InComparison::kSetByCompare,
                         .advice = kInDisplacementWord,
                         .plan_advice = kInDisplacementWord}},
      {.name = "--sync-every",
       .help = "number of steps that each worker trains with its own values between two exchanges; "
               "these steps are a round. At the end of a round, workers exchange as many bytes as "
               "in a step of multi-worker-mirrored",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.sync_every; },
       .rules = {.default_text = "none: local-sgd and --push displacement require the flag",
                 .least = 1,
                 .most = kMostInRound,
                 .example = "8"},
       .is_unset_at_zero = true,
       .needs = {kRounds},
       .decides_updates = true,
       .in_comparison = kOfWord},
      {.name = "--outer",
       .help = outer_help(),
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.outer; },
       .rules = {.value = "STEP", .default_text = "average"},
       .needs = {kRounds},
       .decides_updates = true,
       .in_comparison = kOfWord},
      {.name = "--outer-learning-rate",
       .help = "factor of the outer step",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.outer_learning_rate; },
       .rules = {.default_text = defaults_of(&OuterRuleOptions::learning_rate) +
                                 "; with --push displacement, the default of average and diloco is "
                                 "divided by the number of workers, except under --consistency "
                                 "quorum",
                 .above = 0.0,
                 .example = "0.7"},
       .needs = {kRounds},
       .decides_updates = true},
      {.name = "--outer-momentum",
       .help = "momentum of the outer step",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.outer_momentum; },
       .rules = {.default_text = defaults_of(&OuterRuleOptions::momentum), .least = 0.0},
       .needs = {kRounds},
       .decides_updates = true},
      {.name = "--outer-nesterov",
       .help = "use Nesterov's momentum in the outer step; always on with " +
               names_with(&OuterRuleOptions::nesterov),
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.outer_nesterov; },
       .needs = {kRounds},
       .decides_updates = true},
      {.name = "--outer-scale-by-rate",
       .help =
           "scale the outer momentum by the change of the inner learning rate; always on with " +
           names_with(&OuterRuleOptions::scale_by_rate),
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.outer_scale_by_rate; },
       .needs = {kExchanges},
       .decides_updates = true},
      {.name = "--sync-groups",
       .help = "number of times per round that the replicas of one task average their values; must "
               "divide --sync-every",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.sync_groups; },
       .rules = {.least = 1, .most = kMostInRound},
       .needs = {kExchanges},
       .decides_updates = true,
       .in_comparison = kOfTask},
      {.name = "--local-from",
       .help = "epoch at which rounds begin; may have a fraction. Until then, workers sum their "
               "gradients in every step, as in multi-worker-mirrored",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.local.local_from; },
       .rules = {.default_text = "none: post-local requires the flag",
                 .least = 0.0,
                 .example = "1.5"},
       .needs = {kExchanges, kSums},
       .decides_updates = true},
      {.name = "--inner-state",
       .help = "optimizer state of the workers at the end of a round (keep: each worker keeps its "
               "own; reset: it starts again at zero; average: all workers get the mean, which "
               "multiplies the bytes of an exchange by 1 + the number of state tensors)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return enum_target(o.strategy.local.inner_state);
       },
       .needs = {kRounds},
       .decides_updates = true},
  };
}

}  // namespace syncopate
