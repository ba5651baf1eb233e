// One row of a comparison: a way of training with its own options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "ps/shard/consistency.h"
#include "worker/run/train_options.h"

namespace syncopate::bench {

// The command that takes variants and flags of train; errors name its own flags.
enum class SharedBy : std::uint8_t { kCompare, kPlan };

struct Variant {
  std::string label;      // the user's word, such as "parameter-server:ssp:2"; unique
  std::string strategy;   // the value of train's --strategy
  int workers = 1;        // replicas that compute gradients, in one process or in several; stages
  int micro_batches = 1;  // of a pipeline, each of the batch size per replica
  int servers = 0;        // number of parameter servers
  bool is_synchronous = true;
  int backup_workers = 0;              // gradients that a step does not wait for
  ps::ConsistencyOptions consistency;  // for strategies with shared variables
  // The flags of train that only this variant has, such as --learning-rate=0.03. They take
  // precedence over the flags for every run.
  std::vector<std::string> flags{};
  std::string word{};  // what --strategies takes for this variant, without flags in braces

  bool has_flag(const std::string& name) const;  // name: such as --learning-rate

  // Whether real runs have several processes, with links between them.
  bool has_tasks() const { return row().tasks != StrategyRow::Tasks::kOne; }
  bool has_stages() const { return row().has_stages(); }
  const StrategyRow& row() const { return row_of({.name = strategy}); }
};

// Returns the variant that a word of --strategies stands for:
//   STRATEGY[:CONSISTENCY[:MAX_STALENESS]][+backup:K][+inverse|+dc|+dc-adaptive][{FLAG=VALUE,...}]
// such as mirrored, central-storage:async, parameter-server:ssp:2, parameter-server:sync+backup:1,
// mirrored{learning-rate=0.1,nesterov}; and pipeline[:MICRO_BATCHES]. The workers of a pipeline are
// its stages, and the default is as many micro-batches as stages. In braces stand flags of train
// without their dashes. Throws UsageError naming the word and what is wrong with it.
Variant parse_variant(const std::string& word, int workers, int servers,
                      SharedBy command = SharedBy::kCompare);

// Splits a value of --strategies into its variants, at each comma that is not in braces.
std::vector<std::string> split_variants(const std::string& text);

// One training run: a variant with one seed and all options of train.
struct RunSpec {
  Variant variant;
  std::uint64_t seed = 1;
  TrainOptions train;
  std::string refusal{};  // why the run cannot be trained; "" if it can
  // The injected faults that concern workers and links of this variant.
  FaultInjection faults{};
  std::vector<std::string> fault_flags{};  // the faults as flags of compare and their values
  std::string cluster{};                   // name of the cluster; "" without --clusters

  // Whether only the times of the run, not its weights, depend on the cluster.
  bool has_equal_weights_in_clusters() const {
    return variant.is_synchronous && variant.backup_workers == 0 && train.loop.max_seconds == 0.0 &&
           faults.kills.empty();
  }
  std::vector<std::string> notes{};  // remarks on this run for the report
  // The factor of the given learning rate, and the rule it follows from (report/comparison.h).
  double learning_rate_factor = 1.0;
  std::string learning_rate_rule{};
  std::int64_t warmup_updates = 0;  // the first updates, at a learning rate that still rises
  // The predicted communication seconds of a step on the emulated link; empty without one.
  std::optional<double> predicted_communication_seconds{};
};

// Returns the name of the run's files: label and seed, with letters, digits, . _ and - only.
// plan_runs() refuses two variants if their runs would have the same name.
std::string run_name(const RunSpec& run);

}  // namespace syncopate::bench
