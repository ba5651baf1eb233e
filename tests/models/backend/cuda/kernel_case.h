// Fixtures for the tests of kernels: the three types, inputs drawn from a seed, the orders in which
// a grid must give equal bits, and the tolerances against double precision.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/reference/operations.h"

namespace syncopate::cuda {

using reference::Values;
using Outputs = std::vector<Values>;
using ElementTypes = testing::Types<float, __nv_bfloat16, __half>;

struct RowShape {
  std::int64_t rows;
  int channels;
  std::int64_t count() const { return rows * channels; }
};

// Calls body(shape, offset) with one row or channel, fewer channels than a pack, odd numbers of
// channels, packs of 16 bytes, more packs than a tile of blocks has, and rows for many blocks. The
// maps are aligned to 256 bytes (offset 0), or off by one element (offset 1), where no 16-byte
// access is possible.
void for_each_row_case(const std::function<void(const RowShape&, std::int64_t offset)>& body);

// The number of f32 additions and roundings per thread in the sums over rows, an upper bound for
// our shapes: 9,000 rows give each thread 8 rows, and each term is rounded.
inline constexpr double kF32Additions = 12;

// Draws values uniform in [centre - width, centre + width], rounded to T, as the reference uses the
// rounded values, too.
template <typename T>
Values draw(std::int64_t count, std::uint64_t stream, double centre = 0.0, double width = 1.0);

// Returns half a unit in the last place of a T near 1.
template <typename T>
constexpr double rounding() {
  return 0x1p-24;
}
template <>
constexpr double rounding<__nv_bfloat16>() {
  return 0x1p-8;
}
template <>
constexpr double rounding<__half>() {
  return 0x1p-11;
}

// Returns the error allowed to a result of type T: one rounding to T, and `terms` roundings of f32
// numbers no larger than `largest`. 2^-25 is half of f16's smallest number.
template <typename T>
double allowed(double expected, double terms, double largest) {
  return rounding<T>() * (expected < 0.0 ? -expected : expected) + terms * 0x1p-24 * largest +
         0x1p-25;
}

// Compares two arrays element by element with the allowed error of T, the type of `found`.
template <typename T>
void expect_close(const Values& expected, const Values& found, double terms, double largest = 1.0);
// Compares two arrays, where `largest` differs from element to element.
template <typename T>
void expect_close(const Values& expected, const Values& found, double terms, const Values& largest);
void expect_same_bits(const Outputs& expected, const Outputs& found);

// Calls `run` twice, then with blocks and threads in reverse order; expects equal bits and returns
// the outputs.
Outputs run_in_every_order(const std::function<Outputs()>& run);

}  // namespace syncopate::cuda
