#include "bench/compare/tune_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/presets.h"
#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

constexpr std::string_view kSyncEvery = "sync-every";
constexpr std::string_view kRounds = ":1:4:16:64";  // the numbers of steps, if none are given

// Returns the numbers of steps in a round from a word of --tune, such as "sync-every:1:8:64".
std::vector<int> rounds_in(const std::string& word) {
  std::string text = word.substr(kSyncEvery.size());
  if (text.empty()) text = kRounds;
  std::istringstream numbers(text.substr(1));
  std::vector<int> rounds;
  bool is_wrong = text.front() != ':';
  for (std::string part; std::getline(numbers, part, ':');) {
    const auto steps = parse_number<int>(part);
    is_wrong = is_wrong || !steps || *steps < (rounds.empty() ? 1 : rounds.back() + 1);
    rounds.push_back(steps.value_or(0));
  }
  if (is_wrong || rounds.size() < 2) {
    throw UsageError(
        fmt::format("--tune {}: expected two numbers of steps or more in ascending order, such as "
                    "sync-every:1:8:64",
                    word));
  }
  return rounds;
}

void parse_tune(const std::string& text, TuneOptions& tune) {
  tune.is_on = true;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "momentum") {
      tune.momentum = true;
    } else if (word == "batch-size") {
      tune.batch_size = true;
    } else if (word == "outer-learning-rate") {
      tune.outer_learning_rate = true;
    } else if (word.starts_with(kSyncEvery)) {
      tune.sync_every = rounds_in(word);
    } else if (word != "learning-rate") {
      throw UsageError(
          fmt::format("--tune {}: expected learning-rate, momentum, batch-size, sync-every or "
                      "outer-learning-rate",
                      word));
    }
  }
}

// Throws UsageError unless the variants with rounds are those that --tune searches.
void check_rounds(const CompareOptions& options) {
  const auto tuned = std::ranges::find(options.variants, true, &Variant::tunes_rounds);
  const bool has_tuned = tuned != options.variants.end();
  const bool searches = !options.tune.sync_every.empty();
  if (has_tuned && !searches) {
    throw UsageError(
        fmt::format("{}: give --tune {}, which searches the number of steps in a "
                    "round, or a number in place of \"tuned\"",
                    tuned->label, kSyncEvery));
  }
  if (searches && !has_tuned) {
    throw UsageError(
        fmt::format("--tune {}: no variant has rounds to search; give a variant such as "
                    "local-sgd:average:tuned",
                    kSyncEvery));
  }
  if (options.tune.outer_learning_rate &&
      std::ranges::none_of(options.variants, &Variant::has_outer_step)) {
    throw UsageError("--tune outer-learning-rate: no variant has an outer step; leave it out");
  }
}

}  // namespace

void declare_tune_flags(FlagSet& flags, TuneOptions& tune) {
  flags.begin_group("Tuning");
  flags.add(
      "--tune", [&tune](const std::string& text) { parse_tune(text, tune); },
      "search a good learning rate for each variant before the comparison; also search the others "
      "of these values if they are named. The search trains each variant equally often (12 runs; "
      "with momentum or batch-size 32, with both 92), with seeds of its own, and judges these runs "
      "on samples that they do not train. outer-learning-rate multiplies the runs by about 3. "
      "sync-every searches rounds of 1, 4, 16 and 64 steps for variants such as "
      "local-sgd:average:tuned, and multiplies the runs by about 4; sync-every:1:8:64 searches "
      "other rounds. Not for --clusters, nor for a preset that does not mention --tune",
      {.value = "[momentum,batch-size,sync-every,outer-learning-rate]",
       .default_text = "none",
       .bare = "learning-rate"});
  flags.add(
      "--split", &tune.split,
      "fraction of the training samples on which the search judges its runs",
      {.value = "val=FRACTION",
       .default_text = std::string(kTuningSplit) + ", or the validation split of the data set",
       .needs = "--tune"});
  flags.add("--tune-seed", &tune.seed,
            fmt::format("first seed of the runs of the search, from {} on; another seed repeats "
                        "the search with other initial values and another order of the samples",
                        kMostSeeds),
            {.least = kMostSeeds, .most = 1'000'000, .needs = "--tune"});
}

void check_tune(const CompareOptions& options) {
  check_rounds(options);
  if (!options.tune.is_on) return;
  if (!options.tune.split.empty()) parse_split(options.tune.split);
  const auto preset = std::ranges::find(presets(), options.preset, &PresetRow::name);
  if (preset != presets().end() && !preset->is_tunable) {
    throw UsageError(
        fmt::format("--tune: --preset {} has its own learning rates; leave --preset or --tune out",
                    options.preset));
  }
  if (!options.cluster_words.empty()) {
    throw UsageError(
        "--tune: the best rate depends on the cluster; give the flags of one cluster in place of "
        "--clusters");
  }
  if (options.tune.batch_size && options.batch_size) {
    throw UsageError("--tune batch-size: --same batch fixes the batch; leave one of them out");
  }
}

}  // namespace syncopate::bench
