// Presets are named comparisons that reproduce known results about synchronous and asynchronous
// training.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "bench/compare/compare_options.h"
#include "deploy/cli/flag_set.h"

namespace syncopate::bench {

// The default of compare's --strategies: one strategy of each kind. More rows would need more seeds
// before a test could show a difference, and the other strategies would get the same weights as
// multi-worker-mirrored, bit for bit.
inline constexpr std::array kDefaultVariants = {"one-device", "multi-worker-mirrored",
                                                "parameter-server:sync+backup:1",
                                                "parameter-server:ssp:3", "parameter-server:async"};

// The default of --strategies of `plan`, where additional rows cost little because nothing is
// trained.
inline constexpr std::array kEveryStrategy = {"one-device",
                                              "mirrored",
                                              "multi-worker-mirrored",
                                              "central-storage",
                                              "parameter-server:async",
                                              "parameter-server:ssp:2",
                                              "parameter-server:sync+backup:1"};

struct PresetRow {
  std::string_view name;
  std::string_view help;
  // Sets the variants, the compute delays and the other options of the preset's experiment. Its
  // target accuracy is valid for `digits`; with other data, the target is derived from the runs.
  void (*apply)(CompareOptions& options);
  // Sets the experiment of a paper on --data cifar10:DIR; null if there is none.
  void (*apply_to_cifar10)(CompareOptions& options) = nullptr;
  bool is_tunable = false;  // whether --tune may replace its learning rates
};
// Returns the table of presets that --preset chooses from.
std::span<const PresetRow> presets() noexcept;

// The flags of compare that a preset sets. They are refused together with --preset.
inline constexpr std::array kFlagsOfPresets = {
    "--strategies", "--clusters",   "--workers", "--servers", "--batch-size-per-replica",
    "--same",       "--batch-size", "--budget",  "--updates", "--seconds"};
// Text for error messages: the flags of compare that may be given together with a preset.
inline constexpr std::string_view kBesidePresets =
    "--model, --data, --epochs, --seeds, --first-seed, --evaluations, --target-accuracy, and the "
    "flags for fault injection, for the clock and for output";

// Returns the flags of compare that describe the experiment of the preset on this data set with the
// network `model`. The flags do not include --data. Returns "" if the variants of the preset differ
// in the number of workers.
std::string flags_in_place_of(const PresetRow& preset, const std::string& data,
                              const std::string& model);

// Sets the experiment of --preset `name` in `options`, in which --model, --data and the flags of
// train are already set. flags: the parsed flags of compare. Throws UsageError for an unknown name,
// and for a flag that the preset sets.
void apply_preset(CompareOptions& options, const std::string& name, const FlagSet& flags);

}  // namespace syncopate::bench
