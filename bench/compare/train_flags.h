// The flags of train that a user of compare may give: for every run behind `--`, and for one
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
  TrainOptions options;            // without strategy and cluster, which compare sets for each run
  std::vector<std::string> given;  // the names of the flags that the user gave
  std::vector<std::string> words;  // the words that were parsed

  bool has(const std::string& flag) const;  // whether the user gave the flag
};

// Returns the flags of train. A flag that compare sets in each run itself is refused and says what
// to type instead.
std::vector<RestFlag> shared_rest_flags(SharedBy command);

// Parses the words after `--`. Throws UsageError for a flag that train refuses, and for a flag that
// compare sets in each run itself; the error names the flag and the alternative.
SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words,
                                          SharedBy command = SharedBy::kCompare);

// Returns the flags of train in a text such as "learning-rate=0.03,nesterov" as the words
// --learning-rate=0.03 and --nesterov. A part that begins with a digit belongs to the value before
// it, as in lr-milestones=15,22. Does not look at the values. Throws UsageError for an unknown
// flag, with the nearest right name, and for a flag that compare sets itself.
std::vector<std::string> parse_flags_in_braces(const std::string& text, SharedBy command);

// Returns the shared flags followed by those of one variant, words from parse_flags_in_braces();
// the flags of the variant take precedence. Throws UsageError, which names the variant.
SharedTrainFlags add_flags(const SharedTrainFlags& shared, const std::vector<std::string>& words,
                           const std::string& label);

// Returns why a run with the options `run` ignores one of the given flags; "" if it ignores none.
// Under the virtual clock, flags that change no run there are ignored without a reason.
std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label, bool is_virtual);

// Throws UsageError for a flag that --replay would not honour.
void require_flags_of_replay(const SharedTrainFlags& shared);

// Returns whether flags of the variant itself decide how the data are opened. Its real runs then
// read other samples than the other variants.
bool has_own_data(const Variant& variant);

// Throws UsageError for a flag of the variant, shared or its own, that the virtual clock cannot
// honour; the error says why and what to type.
void require_virtual(const SharedTrainFlags& shared, const Variant& variant);

// Returns how the data of all runs are opened. cache_dir: the folder without --cache-dir.
DataOptions data_options(const SharedTrainFlags& shared, const std::filesystem::path& cache_dir);

// Returns a note that names the given flags that change no virtual run; "" if there are none.
std::string neutral_flags_note(const SharedTrainFlags& shared,
                               const std::vector<Variant>& variants);

}  // namespace syncopate::bench
