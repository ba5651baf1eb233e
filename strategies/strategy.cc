#include "strategies/strategy.h"

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array kStrategies = {
    StrategyRow{"one-device", "one replica, variables on its device", make_one_device},
};

}  // namespace

std::span<const StrategyRow> strategies() noexcept { return kStrategies; }

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph) {
  std::string known;
  for (const StrategyRow& row : kStrategies) {
    if (row.name == options.name) return row.make(options, graph);
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError("--strategy " + options.name +
                   ": no such strategy in this build; choose one of " + known);
}

}  // namespace syncopate
