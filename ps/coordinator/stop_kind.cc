#include "ps/coordinator/stop_kind.h"

#include <algorithm>

namespace syncopate::ps {
namespace {

constexpr std::array<std::string_view, kStopKinds> kStopNames = {"SIGINT", "SIGTERM", "SIGUSR1",
                                                                 "a request", "--max-seconds"};

}  // namespace

std::string_view stop_name(StopKind kind) noexcept {
  return kStopNames[static_cast<std::size_t>(kind)];
}

StopKind stop_kind(std::string_view name) noexcept {
  const auto known = std::find(kStopNames.begin(), kStopNames.end(), name);
  if (known == kStopNames.end()) return StopKind::kRequest;
  return static_cast<StopKind>(known - kStopNames.begin());
}

StopCounts& StopCounts::operator+=(const StopCounts& more) noexcept {
  for (std::size_t kind = 0; kind < kStopKinds; ++kind) by_kind[kind] += more.by_kind[kind];
  return *this;
}

std::optional<StopKind> StopCounts::early_stop() const noexcept {
  for (std::size_t kind = 0; kind < kStopKinds; ++kind) {
    const auto found = static_cast<StopKind>(kind);
    if (found != StopKind::kTimeIsUp && by_kind[kind] > 0) return found;
  }
  return std::nullopt;
}

}  // namespace syncopate::ps
