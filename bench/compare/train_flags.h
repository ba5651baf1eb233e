// The flags of train that a user of compare or plan may give: for all runs after `--`, and for one
// variant in braces.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/compare/variant.h"
#include "deploy/cli/flag_set.h"
#include "worker/input/dataset.h"
#include "worker/run/train_options.h"

namespace syncopate::bench {

struct SharedTrainFlags {
  SharedBy command = SharedBy::kCompare;
  TrainOptions options;            // strategy and cluster are set later, for each run
  std::vector<std::string> given;  // the names of the flags that the user gave
  std::vector<std::string> words;  // the words that were parsed

  bool has(const std::string& flag) const;  // returns whether the user gave the flag
};

// Returns the flags of train with which the words after `--` are parsed. Flags that compare sets
// for each run itself are also returned, but are refused: RestFlag::instead says what to type
// instead.
std::vector<RestFlag> shared_rest_flags(SharedBy command);

// Parses the words after `--`. Throws UsageError for a flag that train refuses, and for a flag that
// compare sets for each run itself; the message names the flag and the alternative.
SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words,
                                          SharedBy command = SharedBy::kCompare);

// Splits a text such as "learning-rate=0.03,nesterov" into the words --learning-rate=0.03 and
// --nesterov. A part that begins with a digit belongs to the value before it, as in
// lr-milestones=15,22. Does not check the values. Throws UsageError for an unknown flag, naming the
// most similar flag, and for a flag that compare sets itself.
std::vector<std::string> parse_flags_in_braces(const std::string& text, SharedBy command);

// Returns the shared flags together with the flags of one variant, which take precedence. words:
// the variant's flags, from parse_flags_in_braces(). label: the label of the variant. Throws
// UsageError naming the variant.
SharedTrainFlags add_flags(const SharedTrainFlags& shared, const std::vector<std::string>& words,
                           const std::string& label);

// Returns why a run with the options `run` would ignore one of the given flags; "" if the run
// ignores none. Under the virtual clock, does not report flags that have no effect on any virtual
// run.
std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label, bool is_virtual);

// Throws UsageError if the user gave a flag of train that has no effect with --replay.
void require_flags_of_replay(const SharedTrainFlags& shared);

// Returns whether the variant's own flags include flags of the data. Its real runs then may read
// other samples than the other variants.
bool has_own_data(const Variant& variant);

// Throws UsageError if the shared flags or the variant's own flags include a flag that cannot be
// honoured under the virtual clock. The message says why and what to type.
void require_virtual(const SharedTrainFlags& shared, const Variant& variant);

// Returns the data options of all runs. cache_dir: the cache folder if --cache-dir is not given.
DataOptions data_options(const SharedTrainFlags& shared, const std::filesystem::path& cache_dir);

// Returns a note that names the given flags that have no effect on virtual runs; "" if there are
// none.
std::string neutral_flags_note(const SharedTrainFlags& shared,
                               const std::vector<Variant>& variants);

}  // namespace syncopate::bench
