// Presets, which are comparisons with a name: they reproduce known results about synchronous and
// asynchronous training.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "bench/compare/compare_options.h"
#include "deploy/cli/flag_set.h"

namespace syncopate::bench {

// The default of compare's --strategies: one of each kind, because each more row costs seeds. The
// other strategies would get the same weights as multi-worker-mirrored, bit for bit.
inline constexpr std::array kDefaultVariants = {"one-device", "multi-worker-mirrored",
                                                "parameter-server:sync+backup:1",
                                                "parameter-server:ssp:3", "parameter-server:async"};

// The default of plan's --strategies, which trains nothing.
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
  // The --data that the target accuracy holds for: "digits", the default, or "cifar10:DIR", which
  // the user must give. With other data, the target is derived.
  std::string_view data;
  // Sets the variants, the compute delays and the other options of the preset's experiment.
  void (*apply)(CompareOptions& options);
};
// Returns the table of presets that --preset chooses from.
std::span<const PresetRow> presets() noexcept;

// The flags of compare that a preset sets itself. They are refused beside --preset.
inline constexpr std::array kFlagsOfPresets = {
    "--strategies", "--clusters", "--workers", "--servers", "--batch-size-per-replica",
    "--budget",     "--updates",  "--seconds"};
// What may be given beside a preset.
inline constexpr std::string_view kBesidePresets =
    "--model, --data, --epochs, --seeds, --first-seed, --evaluations, --target-accuracy, the flags "
    "of fault injection, of the clock and of the output";

// Returns the flags of compare that train this model as the preset does its own, without --data;
// "" if its variants have several numbers of workers.
std::string flags_in_place_of(const PresetRow& preset, const std::string& model);

// Sets the experiment of --preset `name` in options, which have the values of --model, --data and
// the flags of train. flags: those of compare, after they are parsed. Throws UsageError for an
// unknown name, for a flag that the preset sets itself, and for a missing data set.
void apply_preset(CompareOptions& options, const std::string& name, const FlagSet& flags);

}  // namespace syncopate::bench
