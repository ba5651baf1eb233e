// One row for each flag of `train`, with everything that depends on the flag: where its value is
// stored, what --help says, which values and runs it is for, what tasks compare when they meet,
// what a checkpoint records, and what a comparison of several runs does with it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/flag_rules.h"
#include "worker/run/train_options.h"

namespace syncopate {

// What a comparison of several runs (bench/compare) does with a flag that a user gives for them.
struct InComparison {
  enum Use : std::uint8_t {
    kTrains,        // every run trains with it, whatever the clock
    kSetByCompare,  // the comparison sets it for each run itself
    kRefused,       // the comparison does not take it
    kOpensData,     // opens the data, which all virtual runs share
    kNeutral,       // can change neither the weights nor the time of a virtual run
    kRealOnly,      // the virtual clock refuses it
  };
  Use use = kTrains;
  std::string_view advice = "";  // what to do instead
  // Whether the virtual clock refuses the value that the options have, in a run of this number of
  // workers; null: it refuses any value of a flag of kRealOnly.
  bool (*is_refused)(const TrainOptions& options, int workers) = nullptr;
};

// The value of a flag as the command line takes it; nothing if the options have no value for it.
using FlagText = std::optional<std::string>;

struct TrainFlag {
  using Text = FlagText (*)(const TrainOptions&);
  using Condition = bool (*)(const TrainOptions&);
  // Whether the tasks of a job compare the value when they meet, and what a difference causes.
  enum class Agreement : std::uint8_t { kNone, kWarning, kRequired };
  // A condition under which the flag matters. A flag that is given in another run is refused, as
  // "FLAG requires WHAT"; with an empty `what` it has no effect there.
  struct Need {
    Condition holds;
    std::string_view what;
  };

  std::string name;          // such as "--model"
  std::string_view group{};  // the heading in --help; train_flags() sets it
  std::string help{};
  // Where the value is stored. Null for a flag that another part of the program declares: it has a
  // row for `in_comparison` alone.
  FlagTarget (*field)(TrainOptions&) = nullptr;
  FlagRules rules{};
  // Null: what the field's type gives. The values of a flag that may be repeated have a space
  // between them.
  Text text = nullptr;
  bool is_unset_at_zero = false;  // whether the number 0 stands for a flag that was not given
  Agreement agreement = Agreement::kRequired;
  Text compared = nullptr;  // the text that tasks compare, if not `text`
  std::vector<Need> needs{};
  bool decides_updates = false;  // whether update_flags() has it
  bool is_recorded = false;      // whether a checkpoint records it, so that evaluate does not ask
  InComparison in_comparison{};

  // Whether the flag matters in such a run.
  bool applies_to(const TrainOptions& options) const;
  FlagText text_of(const TrainOptions& options) const;
  bool is_switch() const;
};

// Returns all flags, in the order of --help.
const std::vector<TrainFlag>& train_flags();
// Returns the row of a flag, such as "--epochs"; null for a word that is no flag of train.
const TrainFlag* find_train_flag(std::string_view name);

inline constexpr int kMostMicroBatches = 65536;  // of --accumulate

// Conditions of flags in several groups.
bool writes_checkpoints(const TrainOptions& options);
inline constexpr TrainFlag::Need kCheckpointDir = {writes_checkpoints, "--checkpoint-dir DIR"};
inline constexpr TrainFlag::Need kServerStrategy = {has_servers, "--strategy parameter-server"};
// Whether gradients or values travel between tasks.
bool has_links(const TrainOptions& options);

// The groups of the table, in data_rows.cc, strategy_rows.cc, schedule_rows.cc and output_rows.cc.
std::vector<TrainFlag> data_flags();
std::vector<TrainFlag> strategy_flags();
std::vector<TrainFlag> schedule_flags();
std::vector<TrainFlag> practice_flags();
std::vector<TrainFlag> cluster_flags();
std::vector<TrainFlag> consistency_flags();
std::vector<TrainFlag> output_flags();
std::vector<TrainFlag> fault_flags();

}  // namespace syncopate
