// Resizes pictures: bilinear, with half-pixel centres, without antialiasing, in integers. The
// result has the same bits on every machine and differs from tf.image.resize by at most 1/255.
//
// Column x of the result lies at (x + 1/2) * w / out_w - 1/2 in the window, in stored pixels; row y
// is computed in the same way. The two neighbours on each axis have weights in units of 1/2048.
// Positions beyond the edge of the window use the pixel at the edge. The four products are summed
// exactly and rounded once, so neither the order of the axes nor a later flip or transposition
// changes the result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

// The part of one axis that is resized: [begin, begin + length) in stored pixels. The caller may
// give reduced rows and columns to the resizer, with one pixel for every `reduction` stored pixels.
struct ResizeWindow {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t reduction = 1;
};

// For one axis: which pixels of the picture are interpolated for each pixel of the result, and
// their weights. "Reduced pixels" are the pixels that the caller gives, one for every `reduction`
// stored pixels (ResizeWindow).
struct ResizeAxis {
  // For each pixel of the result, the index of the first of its two neighbours, in reduced pixels.
  std::vector<std::int32_t> lower;
  // The weight of the second neighbour, which has index lower + 1, in units of 1/2048. If the
  // weight is 0, the second neighbour is not read.
  std::vector<std::int32_t> weight;
  // The first and the last reduced pixel of the window.
  std::int64_t first = 0;
  std::int64_t last = 0;
  // Whether the result is a copy of the window.
  bool is_copy = false;
};

ResizeAxis make_resize_axis(const ResizeWindow& window, std::int64_t size);

// Resizes one picture. The caller adds its rows from top to bottom. One thread only.
class Resizer {
 public:
  // columns, rows: the window of the picture that is resized. out: the memory of the result,
  // [height, width, channels]; must outlive the object.
  Resizer(const ResizeWindow& columns, const ResizeWindow& rows, std::int64_t width,
          std::int64_t height, int channels, std::span<std::uint8_t> out);

  // Return the range of columns that each row given to add_row() must have, and the range of rows
  // that the caller must add. Both count the pixels that the caller gives, see
  // ResizeWindow::reduction.
  std::int64_t first_column() const noexcept { return columns_.first; }
  std::int64_t last_column() const noexcept { return columns_.last; }
  std::int64_t first_row() const noexcept { return rows_.first; }
  std::int64_t last_row() const noexcept { return rows_.last; }

  // Whether the result is a copy of the window, so that nothing has to be resized.
  bool is_copy() const noexcept { return columns_.is_copy && rows_.is_copy; }
  // If is_copy(), returns the memory of the result for row y of the picture. The caller may write
  // all rows to this memory instead of adding them, which saves a copy of every pixel.
  std::uint8_t* copied_row(std::int64_t y) const noexcept {
    return out_ + (y - rows_.first) * row_bytes_;
  }

  // Adds the next row. The first call adds row first_row(), the last call adds row last_row(). The
  // row starts at column first_column() and must stay readable until the next call has returned.
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
