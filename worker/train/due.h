// When something is due that happens every few steps or epochs.
#pragma once

#include <cstdint>

namespace syncopate {

// Returns whether a multiple of `every` was passed after `before` and up to `now`; false if `every`
// is 0.
constexpr bool has_passed(std::int64_t every, std::int64_t before, std::int64_t now) noexcept {
  return every > 0 && now / every > before / every;
}

}  // namespace syncopate
