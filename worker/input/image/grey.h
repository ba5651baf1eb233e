// Converts a colour to grey. Source: ITU-R BT.601, which JPEG files use, too.
#pragma once

#include <cstdint>

namespace syncopate {

constexpr std::uint8_t grey_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) noexcept {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

}  // namespace syncopate
