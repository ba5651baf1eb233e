#include "models/optim/update_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Returns the first parameter that ends behind arena element `index`. A binary search, because an
// arena has many parameters and a range covers few of them.
std::size_t first_parameter(const ArenaLayout& layout, std::int64_t index) {
  std::size_t low = 0;
  std::size_t high = layout.entries().size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (layout.offset(middle) + layout.size(middle) <= index) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

void update_range(const Optimizer& optimizer, const UpdateStep& step, const ArenaLayout& layout,
                  Bucket range, std::span<float> values, std::span<const float> gradients,
                  std::span<const std::span<float>> slots) {
  check_update_lengths(optimizer, values, gradients, slots);
  check(slots.size() <= kMaxSlots, "an optimizer has at most kMaxSlots slots");
  if (static_cast<std::int64_t>(values.size()) != range.end - range.begin) {
    throw ShapeError(fmt::format("update of arena elements {} to {}: found {} values; expected {}",
                                 range.begin, range.end, values.size(), range.end - range.begin));
  }
  const std::size_t parameters = layout.entries().size();
  for (std::size_t i = first_parameter(layout, range.begin);
       i < parameters && layout.offset(i) < range.end; ++i) {
    const std::int64_t first = std::max(range.begin, layout.offset(i));
    const std::int64_t last = std::min(range.end, layout.offset(i) + layout.size(i));
    const auto at = static_cast<std::size_t>(first - range.begin);
    const auto count = static_cast<std::size_t>(last - first);
    std::array<std::span<float>, kMaxSlots> windows;
    for (std::size_t s = 0; s < slots.size(); ++s) windows[s] = slots[s].subspan(at, count);
    optimizer.update(step, values.subspan(at, count), gradients.subspan(at, count),
                     std::span(windows).first(slots.size()), layout.entries()[i].decays);
  }
}

}  // namespace syncopate
