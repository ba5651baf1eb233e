// One row of a comparison: a way of training, with the flags that are its alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "ps/shard/consistency.h"
#include "worker/run/train_options.h"

namespace syncopate::bench {

struct Variant {
  std::string label;     // as the user named it: "parameter-server:ssp:2"; unique in a comparison
  std::string strategy;  // train's --strategy
  int workers = 1;       // replicas that compute gradients, in one process or in several
  int servers = 0;       // parameter servers
  bool keeps_step = true;
  int backup_workers = 0;              // not waited for in a step
  ps::ConsistencyOptions consistency;  // where variables are shared
  // Sets what else only this row has; null: nothing.
  std::function<void(TrainOptions&)> adjust;

  // In real processes it has several, with links between them.
  bool has_tasks() const { return strategy == "multi-worker-mirrored" || servers > 0; }
};

// The variant that a word of --strategies stands for:
//   STRATEGY[:CONSISTENCY[:MAX_STALENESS]][+backup:K][+inverse|+dc|+dc-adaptive]
// such as mirrored, central-storage:async, parameter-server:ssp:2, parameter-server:sync+backup:1.
// Throws UsageError naming the word and what is wrong with it.
Variant parse_variant(const std::string& word, int workers, int servers);

// What is compared when nobody says.
inline constexpr std::array kEveryStrategy = {"one-device",
                                              "mirrored",
                                              "multi-worker-mirrored",
                                              "central-storage",
                                              "parameter-server:async",
                                              "parameter-server:ssp:2",
                                              "parameter-server:sync+backup:1"};

// One training run: a variant with one seed, and everything train is told.
struct RunSpec {
  Variant variant;
  std::uint64_t seed = 1;
  TrainOptions train;
  std::string refusal{};  // why it cannot be trained; "": it can
  // What is done to it on purpose: of all that was asked for, what concerns workers and links that
  // the variant has.
  Trouble trouble{};
  std::vector<std::string> trouble_words{};  // the same as flags of compare and their values
  std::vector<std::string> notes{};          // that the report makes of it, whatever comes of it
  // Of a step, under the trouble's link; none where nothing is sent over one.
  std::optional<double> predicted_communication_seconds{};
};

// File name of its lines in the report's folder: label and seed, with only letters, digits, . _ -.
std::string run_name(const RunSpec& run);

}  // namespace syncopate::bench
