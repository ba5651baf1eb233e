// The one definition of resizing: bilinear, half-pixel centres, no antialiasing, in integers. The
// result has the same bits on every machine and is within 1/255 of tf.image.resize.
//
// Pixel (x, y) of the result lies at ((x + 1/2) * w / out_w - 1/2) of the window, in stored pixels.
// The two neighbours on each axis have weights in units of 1/2048; positions beyond the window's
// edge take the edge. The four products are summed exactly and rounded once, so neither the order
// of the axes nor a later flip or transposition changes the sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

// The part of one axis that is resized: [begin, begin + length) in stored pixels. The rows or
// columns that are given to the resizer are reduced: one for every `reduction` stored pixels.
struct ResizeWindow {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t reduction = 1;
};

// Where the pixels of the result lie on one axis.
struct ResizeAxis {
  // For each pixel of the result: the first of its two neighbours, in reduced pixels.
  std::vector<std::int32_t> lower;
  // The weight of the second neighbour, lower + 1, in 1/2048. 0: the second is not read.
  std::vector<std::int32_t> weight;
  // First and last reduced pixel that the window contains.
  std::int64_t first = 0;
  std::int64_t last = 0;
  // Whether the result is a copy of the window.
  bool is_copy = false;
};

ResizeAxis make_resize_axis(const ResizeWindow& window, std::int64_t size);

// Resizes one picture. The caller gives its rows from top to bottom. One thread only.
class Resizer {
 public:
  // out is [height, width, channels].
  Resizer(const ResizeWindow& columns, const ResizeWindow& rows, std::int64_t width,
          std::int64_t height, int channels, std::span<std::uint8_t> out);

  // The first and last column that a row must have, and the first and last row, in reduced pixels.
  std::int64_t first_column() const noexcept { return columns_.first; }
  std::int64_t last_column() const noexcept { return columns_.last; }
  std::int64_t first_row() const noexcept { return rows_.first; }
  std::int64_t last_row() const noexcept { return rows_.last; }

  // Whether the result is the window itself.
  bool is_copy() const noexcept { return columns_.is_copy && rows_.is_copy; }
  // Returns the memory of row y of the window in the result, if is_copy(). The caller may write all
  // rows there instead of adding them, which saves a copy of every pixel.
  std::uint8_t* copied_row(std::int64_t y) const noexcept {
    return out_ + (y - rows_.first) * row_bytes_;
  }

  // Adds the next row; the first call adds row first_row(), the last one last_row(). The row starts
  // at column first_column() and must stay readable for the next call too.
  void add_row(const std::uint8_t* row);

 private:
  void write_row(const std::uint8_t* upper, const std::uint8_t* lower, std::int32_t weight);

  ResizeAxis columns_;
  ResizeAxis rows_;
  int channels_;
  std::uint8_t* out_;
  std::int64_t row_bytes_;
  std::int64_t next_in_;
  std::size_t next_out_ = 0;
  const std::uint8_t* previous_ = nullptr;
  std::vector<std::int32_t> sums_;  // the vertical sums of one row
};

// Resizes the window [height, width, channels] to [out_height, out_width, channels].
void resize_pixels(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height,
                   int channels, std::int64_t out_width, std::int64_t out_height,
                   std::span<std::uint8_t> out);

}  // namespace syncopate
