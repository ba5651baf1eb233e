// Treats denormal floating-point numbers as zero. Denormals, which are too small for a normal
// exponent, make an operation about a hundred times slower. They arise in every long training run:
// when a unit no longer learns, an optimizer's averages for it decay to denormals.
#pragma once

#include <immintrin.h>

namespace syncopate {

// While this object lives, its thread treats denormal operands and results as zero (f32 and f64).
// All code that computes values runs while such an object lives, so that a device and a shard give
// the same bits.
class FlushDenormals {
 public:
  FlushDenormals() noexcept : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  // The flags in the register MXCSR that flush denormals, bits 15 and 6. Source: Intel 64 and IA-32
  // Architectures Software Developer's Manual, 10.2.3.
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;
  unsigned saved_;
};

}  // namespace syncopate
