// The table of the flags of `train`, with one row per flag. A row has the option that stores the
// value of the flag, the text in --help, the accepted values, and the runs in which the flag has an
// effect. It also says what the flag describes, whether tasks compare the value when they meet, and
// how a comparison of several runs treats the flag.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/flag_rules.h"
#include "worker/run/train_options.h"

namespace syncopate {

// How a comparison of several runs (`syncopate-bench compare`) treats a flag that the user gives to
// the comparison. Runs take real time or the time of a virtual clock.
struct InComparison {
  enum Use : std::uint8_t {
    kTrains,        // every run gets the flag, with the virtual and with the real clock
    kSetByCompare,  // the comparison sets the flag for each run
    kSetByVariant,  // like kSetByCompare, but a variant of `compare` may give a value of its own
    kRefused,       // the comparison refuses the flag
    kOpensData,     // the flag decides which data are opened; all virtual runs share the data
    kNeutral,       // the flag changes neither the weights nor the time of a virtual run
    kRealOnly,      // a comparison with the virtual clock refuses the flag
  };
  Use use = kTrains;
  std::string_view advice = "";  // what the user should do instead, for the message
  // Returns whether a comparison with the virtual clock refuses the flag's value in `options` for a
  // run with `workers` workers. Null: it refuses every value if `use` is kRealOnly, else none.
  bool (*is_refused)(const TrainOptions& options, int workers) = nullptr;
  // The advice of `syncopate-bench plan`, which starts no runs; empty: to leave the flag out.
  std::string_view plan_advice = "";
  // Whether a comparison that replays a record takes the flag. It takes those of kOpensData, too.
  bool is_for_replay = false;
};

inline constexpr std::string_view kOfPlan = "plan has this flag itself; give it before the --";
// For flags that `compare` and `plan` have themselves.
inline constexpr InComparison kOfCompareAndPlan = {
    .use = InComparison::kSetByCompare, .advice = "give it before the --", .plan_advice = kOfPlan};
// For flags that `compare` and `plan` have themselves, and that a variant of `compare` may have.
inline constexpr InComparison kOfVariants = {
    .use = InComparison::kSetByVariant, .advice = "give it before the --", .plan_advice = kOfPlan};

// The value of a flag as it is written on the command line; nullopt if the options have no value
// for the flag.
using FlagText = std::optional<std::string>;

struct TrainFlag {
  using Text = FlagText (*)(const TrainOptions&);
  using Condition = bool (*)(const TrainOptions&);
  // Whether the tasks of a job compare the value when they meet. A difference causes a warning
  // (kWarning) or an error (kRequired).
  enum class Agreement : std::uint8_t { kNone, kWarning, kRequired };
  // What a flag describes, for commands that do not train and programs with their own workload.
  enum class Subject : std::uint8_t {
    kTraining,     // the training; only commands that train take the flag
    kWorkload,     // which network and which data; not for a program that has its own
    kSamples,      // how pictures and records become samples; not for such a program either
    kAnyWorkload,  // a setting of every network and every data set
  };
  // A condition under which the flag has an effect. In a run where the condition does not hold, the
  // flag is refused with "FLAG requires WHAT"; if `what` is empty, the flag is ignored.
  struct Need {
    Condition holds;
    std::string_view what;
  };

  std::string name;          // such as "--model"
  std::string_view group{};  // the heading of the flag in --help; set by train_flags()
  std::string help{};
  // Returns the option that stores the value. Null for a flag that another part of the program
  // declares; its row exists for `in_comparison` alone.
  FlagTarget (*field)(TrainOptions&) = nullptr;
  FlagRules rules{};
  // Returns the value as text; null: the text follows from the type of the option. The values of a
  // flag that may be repeated are separated by spaces.
  Text text = nullptr;
  bool is_unset_at_zero = false;  // whether the value 0 means that the flag was not given
  Agreement agreement = Agreement::kRequired;
  Text compared = nullptr;  // the text that tasks compare; null: `text`
  std::vector<Need> needs{};
  bool decides_updates = false;  // whether update_flags() contains the flag
  // Whether the flag sets the length of a run. It decides updates under a cosine schedule, because
  // the rate follows from the length.
  bool sets_length = false;
  Subject subject = Subject::kTraining;
  // Whether `evaluate` takes the value from the checkpoint unless the flag is given. The default in
  // its --help then says so.
  bool has_recorded_default = false;
  InComparison in_comparison{};

  // Whether the flag has an effect in a run with these options.
  bool applies_to(const TrainOptions& options) const;
  FlagText text_of(const TrainOptions& options) const;
  bool is_switch() const;
};

// Returns all flags, in the order of --help.
const std::vector<TrainFlag>& train_flags();
// Returns the row of a flag, such as "--epochs"; null if `name` is not a flag of train.
const TrainFlag* find_train_flag(std::string_view name);

inline constexpr int kMostMicroBatches = 65536;  // largest value of --accumulate

// Conditions under which flags have an effect (TrainFlag::Need), each for flags of several groups.
bool writes_checkpoints(const TrainOptions& options);
inline constexpr TrainFlag::Need kCheckpointDir = {writes_checkpoints, "--checkpoint-dir DIR"};
inline constexpr TrainFlag::Need kServerStrategy = {has_servers, "--strategy parameter-server"};
// Whether the tasks of the job send gradients or values to each other.
bool has_links(const TrainOptions& options);

// Each of these functions returns the rows of one group of the table of the flags of `train`. The
// functions are in the files *_rows.cc.
std::vector<TrainFlag> data_flags();
std::vector<TrainFlag> strategy_flags();
std::vector<TrainFlag> schedule_flags();
std::vector<TrainFlag> practice_flags();
std::vector<TrainFlag> local_update_flags();
std::vector<TrainFlag> cluster_flags();
std::vector<TrainFlag> consistency_flags();
std::vector<TrainFlag> output_flags();
std::vector<TrainFlag> fault_flags();

}  // namespace syncopate
