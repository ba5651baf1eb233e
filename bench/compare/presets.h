// Comparisons worth knowing by name: what is known about synchronous and asynchronous training, to
// be seen again on one's own machine.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/compare/compare_options.h"

namespace syncopate::bench {

struct PresetRow {
  std::string_view name;
  std::string_view help;
  std::string_view data;  // that must be named, "cifar10:DIR"; empty: what compare trains on anyway
  // Fills variants, service times and what the experiment fixes.
  void (*apply)(CompareOptions& options);
};
// The table behind --preset.
std::span<const PresetRow> presets() noexcept;

}  // namespace syncopate::bench
