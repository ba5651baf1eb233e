#include "worker/train/stop_kinds.h"

#include <algorithm>
#include <array>

#include "strategies/variable_store.h"

namespace syncopate {
namespace {

constexpr std::array<std::string_view, kStopKinds> kStopNames = {"SIGINT", "SIGTERM", "SIGUSR1",
                                                                 "a request", "--max-seconds"};
constexpr std::size_t kAnyRequest = 3;

}  // namespace

std::string_view stop_name(std::size_t kind) { return kStopNames.at(kind); }

std::size_t stop_kind(std::string_view name) {
  const auto known = std::find(kStopNames.begin(), kStopNames.end(), name);
  if (known == kStopNames.end()) return kAnyRequest;
  return static_cast<std::size_t>(known - kStopNames.begin());
}

}  // namespace syncopate
