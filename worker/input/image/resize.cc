#include "worker/input/image/resize.h"

#include <algorithm>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr int kWeightBits = 11;
constexpr std::int32_t kOne = 1 << kWeightBits;

// upper * (1 - weight) + lower * weight for each byte of a row, in 1/2048.
void blend_rows(const std::uint8_t* upper, const std::uint8_t* lower, std::int32_t weight,
                std::int64_t size, std::int32_t* sums) {
  for (std::int64_t i = 0; i < size; ++i) {
    sums[i] = (upper[i] << kWeightBits) + (lower[i] - upper[i]) * weight;
  }
}

// Blends neighbouring columns of a row of sums and rounds to bytes. At most 255 * 2^22 + 2^21,
// which an int32 holds.
template <int kChannels>
void blend_columns(const ResizeAxis& axis, const std::int32_t* sums, std::uint8_t* out) {
  const std::size_t size = axis.lower.size();
  for (std::size_t x = 0; x < size; ++x) {
    const std::int32_t weight = axis.weight[x];
    const std::int32_t* left = sums + std::int64_t{axis.lower[x]} * kChannels;
    const std::int32_t* right = weight == 0 ? left : left + kChannels;
    for (int c = 0; c < kChannels; ++c) {
      const std::int32_t sum = left[c] * (kOne - weight) + right[c] * weight;
      out[x * kChannels + c] = static_cast<std::uint8_t>((sum + (1 << 21)) >> (2 * kWeightBits));
    }
  }
}

}  // namespace

ResizeAxis make_resize_axis(const ResizeWindow& window, std::int64_t size) {
  check(window.begin >= 0 && window.length > 0 && window.reduction > 0 && size > 0,
        "a window without pixels, or a result without pixels");
  ResizeAxis axis;
  axis.first = window.begin / window.reduction;
  axis.last = (window.begin + window.length - 1) / window.reduction;
  axis.is_copy = window.reduction == 1 && window.length == size;
  axis.lower.resize(size);
  axis.weight.resize(size);
  // The position of pixel i, ((i + 1/2) * length / size + begin) / reduction - 1/2, as a fraction.
  const std::int64_t denominator = 2 * size * window.reduction;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t numerator =
        (2 * i + 1) * window.length + 2 * size * window.begin - size * window.reduction;
    // Before the first pixel's centre the numerator may be negative; the edge is taken there.
    std::int64_t lower = numerator < 0 ? -1 : numerator / denominator;
    const std::int64_t rest = numerator - lower * denominator;
    std::int64_t weight = (2 * rest * kOne + denominator) / (2 * denominator);
    if (weight == kOne) {
      ++lower;
      weight = 0;
    }
    if (lower < axis.first) {
      lower = axis.first;
      weight = 0;
    } else if (lower >= axis.last) {
      lower = axis.last;
      weight = 0;
    }
    axis.lower[i] = static_cast<std::int32_t>(lower);
    axis.weight[i] = static_cast<std::int32_t>(weight);
  }
  return axis;
}

Resizer::Resizer(const ResizeWindow& columns, const ResizeWindow& rows, std::int64_t width,
                 std::int64_t height, int channels, std::span<std::uint8_t> out)
    : columns_(make_resize_axis(columns, width)),
      rows_(make_resize_axis(rows, height)),
      channels_(channels),
      out_(out.data()),
      row_bytes_((columns_.last - columns_.first + 1) * channels),
      next_in_(rows_.first) {
  check(channels == 1 || channels == 3, "pictures have 1 or 3 channels");
  check(out.size() == static_cast<std::size_t>(width * height * channels),
        "a picture of another size than its buffer");
  // Rows begin at the first column of the window.
  for (std::int32_t& lower : columns_.lower) lower -= static_cast<std::int32_t>(columns_.first);
  sums_.resize(row_bytes_);
}

void Resizer::add_row(const std::uint8_t* row) {
  check(next_in_ <= rows_.last, "a row beyond the last one of the window");
  const std::size_t height = rows_.lower.size();
  while (next_out_ < height) {
    const std::int32_t weight = rows_.weight[next_out_];
    if (weight == 0 ? rows_.lower[next_out_] != next_in_ : rows_.lower[next_out_] + 1 != next_in_) {
      break;
    }
    write_row(weight == 0 ? row : previous_, row, weight);
    ++next_out_;
  }
  previous_ = row;
  ++next_in_;
}

void Resizer::write_row(const std::uint8_t* upper, const std::uint8_t* lower, std::int32_t weight) {
  const auto out_bytes = static_cast<std::int64_t>(columns_.lower.size()) * channels_;
  std::uint8_t* const out = out_ + static_cast<std::int64_t>(next_out_) * out_bytes;
  if (columns_.is_copy && weight == 0) {
    std::copy_n(upper, out_bytes, out);
    return;
  }
  blend_rows(upper, lower, weight, row_bytes_, sums_.data());
  if (channels_ == 3) {
    blend_columns<3>(columns_, sums_.data(), out);
  } else {
    blend_columns<1>(columns_, sums_.data(), out);
  }
}

void resize_pixels(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height,
                   int channels, std::int64_t out_width, std::int64_t out_height,
                   std::span<std::uint8_t> out) {
  check(pixels.size() == static_cast<std::size_t>(width * height * channels),
        "a picture of another size than its buffer");
  Resizer resizer({0, width}, {0, height}, out_width, out_height, channels, out);
  for (std::int64_t y = 0; y < height; ++y) {
    resizer.add_row(pixels.data() + y * width * channels);
  }
}

}  // namespace syncopate
