// Floating-point numbers too small for a normal exponent cost a hundred times the usual
// multiplication. They arise in every long training run: an optimizer's averages of a unit that no
// longer learns decay into them.
#pragma once

#include <immintrin.h>

namespace syncopate {

// While it lives, this thread computes with such numbers as zero, operands and results alike (f32
// and f64). Used around everything that computes values, so that a device and a shard give the same
// bits.
class FlushDenormals {
 public:
  FlushDenormals() noexcept : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  // Bits 15 and 6 of MXCSR. Source: Intel 64 and IA-32 Architectures Software Developer's
  // Manual, 10.2.3.
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;
  unsigned saved_;
};

}  // namespace syncopate
