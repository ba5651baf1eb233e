// The exponential of a vector, for the kernels of activations and softmax.
#pragma once

#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {

// Returns e^x, computed as 2^n * e^r with x = n * ln 2 + r and |r| <= ln 2 / 2, where a polynomial
// approximates e^r. x is first clamped to [-87, 88], so that the result is in the range of f32. NaN
// stays NaN. Source: Cephes, expf (Moshier 1989).
static inline Vec exponential(Vec x) {
  constexpr float kLowest = -87.0F;
  constexpr float kHighest = 88.0F;
  x = x < kLowest ? Vec{} + kLowest : x;
  x = x > kHighest ? Vec{} + kHighest : x;
  // Adding 1.5 * 2^23 rounds to a whole number, which the low bits of the sum then hold.
  constexpr float kRounder = 12582912.0F;
  const Vec shifted = x * 1.44269504F + kRounder;
  const Vec n = shifted - kRounder;
  const Vec r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Vec y = Vec{} + 1.9875691500e-4F;
  y = y * r + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * (r * r) + r + 1.0F;
  const IntVec power = ((reinterpret_cast<IntVec>(shifted) - 0x4B400000) + 127) << 23;
  return x == x ? y * reinterpret_cast<Vec>(power) : x;
}

}  // namespace syncopate::SYNCOPATE_ISA
