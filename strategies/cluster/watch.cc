#include "strategies/cluster/watch.h"

#include <algorithm>

namespace syncopate {

using std::chrono::nanoseconds;

nanoseconds Watch::round(Time now, nanoseconds wait) {
  const nanoseconds late = now - expected_;
  expected_ = now + wait;
  if (late <= kTolerance) return nanoseconds(0);
  for (Time& heard : heard_) heard += late;
  return late;
}

std::optional<int> Watch::silent(Time now) const {
  const auto quietest = std::ranges::min_element(heard_);
  if (now - *quietest < patience_) return std::nullopt;
  return static_cast<int>(quietest - heard_.begin());
}

nanoseconds Watch::time_left(Time now) const {
  return std::max(nanoseconds(0), patience_ - (now - std::ranges::min(heard_)));
}

}  // namespace syncopate
