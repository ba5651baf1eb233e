// A variant is one row of a comparison: a strategy with a number of workers and options of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "ps/shard/consistency.h"
#include "worker/run/train_options.h"

namespace syncopate::bench {

// The command that takes variants and flags of train. Error messages name the flags of this
// command.
enum class SharedBy : std::uint8_t { kCompare, kPlan };

// Whether --tune chose hyperparameters of a variant; kAtBorder: values beyond those that were tried
// may be better.
enum class Tuned : std::uint8_t { kNo, kInside, kAtBorder };

struct Variant {
  std::string label;     // the user's word, unique, such as "parameter-server:ssp:2"
  std::string strategy;  // the value of train's --strategy
  // The number of replicas that compute gradients, in one process or several. For a pipeline, the
  // number of stages.
  int workers = 1;
  // For a pipeline: the number of micro-batches of a step. Each micro-batch has the batch size per
  // replica.
  int micro_batches = 1;
  // For local updates: the number of steps in a round, and the name of the outer step.
  // tunes_rounds: whether --tune searches the number of steps.
  std::int64_t sync_every = 0;
  bool tunes_rounds = false;
  // Whether asynchronous workers train in rounds and push displacements.
  bool pushes_displacements = false;
  std::string outer{};
  int servers = 0;  // number of parameter servers
  bool is_synchronous = true;
  int backup_workers = 0;              // number of gradients that a step does not wait for
  ps::ConsistencyOptions consistency;  // for strategies with shared variables
  // The flags of train for this variant alone, such as --learning-rate=0.03. They take precedence
  // over the flags for all runs.
  std::vector<std::string> flags{};
  // The batch that the braces give instead of the batch of the comparison: samples per worker, or
  // samples per update. At most one of them is given.
  std::optional<std::int64_t> worker_batch{};
  std::optional<std::int64_t> update_batch{};
  Tuned tuned = Tuned::kNo;
  std::string word{};  // the word of --strategies for this variant, without flags in braces

  bool has_flag(const std::string& name) const;  // name: "--learning-rate"

  // Returns whether real runs have several processes, with links between them.
  bool has_tasks() const { return row().tasks != StrategyRow::Tasks::kOne; }
  bool has_stages() const { return row().has_stages(); }
  bool has_rounds() const { return row().has_rounds; }
  bool has_outer_step() const { return has_rounds() || pushes_displacements; }
  const StrategyRow& row() const { return row_of({.name = strategy}); }
};

// Returns the variant that a word of --strategies stands for:
//   STRATEGY[:CONSISTENCY[:NUMBER[:GRACE]]][+backup:K][+STALENESS_RULE[:N]]
//     [+displacement:OUTER:STEPS][{FLAG=VALUE,...}]
// such as mirrored, central-storage:async, parameter-server:ssp:2, parameter-server:sync+backup:1,
// parameter-server:async+ringmaster:4, mirrored{learning-rate=0.1,nesterov};
// pipeline[:MICRO_BATCHES]; and local-sgd:OUTER:STEPS, with the outer step and the number of steps
// in a round, or "tuned" for a number that --tune searches. The workers of a pipeline are its
// stages; the default number of micro-batches is the number of stages. Braces contain flags of
// train without their dashes. Throws UsageError naming the word and what is wrong with it.
Variant parse_variant(const std::string& word, int workers, int servers,
                      SharedBy command = SharedBy::kCompare);

// Splits a value of --strategies into its variants, at each comma that is not in braces.
std::vector<std::string> split_variants(const std::string& text);

// One training run: a variant with one seed and all options of train.
struct RunSpec {
  Variant variant;
  std::uint64_t seed = 1;
  TrainOptions train;
  std::string refusal{};  // why the run cannot be trained; "": it can be trained
  // The injected faults that concern workers and links of this variant.
  FaultInjection faults{};
  std::vector<std::string> fault_flags{};  // `faults` as flags of compare with their values
  std::string tuning_of{};                 // for a tuning run: the label of the tuned variant
  std::string cluster{};                   // name of the cluster; "" without --clusters

  // Returns whether the weights of the run do not depend on the times of its steps, so that they
  // are equal on all clusters and in a repeated real run.
  bool has_weights_independent_of_times() const {
    return variant.is_synchronous && variant.backup_workers == 0 && train.loop.max_seconds == 0.0 &&
           faults.kills.empty();
  }
  std::vector<std::string> notes{};  // remarks on this run for the report
  // The run trains with the given learning rate times this factor. The factor follows from
  // learning_rate_rule, see Comparison::learning_rate_rule.
  double learning_rate_factor = 1.0;
  std::string learning_rate_rule{};
  // The number of updates at the beginning in which the learning rate still rises.
  std::int64_t warmup_updates = 0;
  std::optional<double> stable_rate{};  // see ComparedVariant::stable_rate
  // The predicted communication time of a step on the emulated link, in seconds; empty without an
  // emulated link.
  std::optional<double> predicted_communication_seconds{};
};

// Returns the name of the run's files, made of the label and the seed. The name has only letters,
// digits and the characters . _ -. plan_runs() refuses two variants with runs of the same name.
std::string run_name(const RunSpec& run);

}  // namespace syncopate::bench
