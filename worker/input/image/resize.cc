#include "worker/input/image/resize.h"

#include <smmintrin.h>  // SSE4.1, which every x86-64-v2 machine has

#include <algorithm>
#include <cstring>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr int kWeightBits = 11;
constexpr std::int32_t kOne = 1 << kWeightBits;

// upper * (1 - weight) + lower * weight for each byte of a row, in 1/2048.
void blend_rows(const std::uint8_t* upper, const std::uint8_t* lower, std::int32_t weight,
                std::int64_t size, std::int32_t* sums) {
  // One instruction multiplies pairs of 16-bit numbers and adds each pair.
  const __m128i weights = _mm_set1_epi32(weight << 16 | (kOne - weight));
  const __m128i zero = _mm_setzero_si128();
  std::int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    const __m128i above = _mm_loadu_si128(reinterpret_cast<const __m128i*>(upper + i));
    const __m128i below = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lower + i));
    const __m128i first = _mm_unpacklo_epi8(above, below);
    const __m128i second = _mm_unpackhi_epi8(above, below);
    auto* const out = reinterpret_cast<__m128i*>(sums + i);
    _mm_storeu_si128(out, _mm_madd_epi16(_mm_unpacklo_epi8(first, zero), weights));
    _mm_storeu_si128(out + 1, _mm_madd_epi16(_mm_unpackhi_epi8(first, zero), weights));
    _mm_storeu_si128(out + 2, _mm_madd_epi16(_mm_unpacklo_epi8(second, zero), weights));
    _mm_storeu_si128(out + 3, _mm_madd_epi16(_mm_unpackhi_epi8(second, zero), weights));
  }
  for (; i < size; ++i) sums[i] = upper[i] * (kOne - weight) + lower[i] * weight;
}

// Blends two neighbouring columns and rounds to bytes: at most 255 * 2^22 + 2^21, which an int32
// holds. A second neighbour with weight 0 may lie beyond the row; the caller has padded the sums.
void blend_grey_columns(const ResizeAxis& axis, const std::int32_t* sums, std::uint8_t* out) {
  for (std::size_t x = 0; x < axis.lower.size(); ++x) {
    const std::int32_t* const left = sums + axis.lower[x];
    out[x] = static_cast<std::uint8_t>(
        (left[0] * kOne + (left[1] - left[0]) * axis.weight[x] + (1 << 21)) >> (2 * kWeightBits));
  }
}

// Returns the bytes of the three channels of a pixel, and one byte of the next pixel.
std::int32_t blend_rgb(const ResizeAxis& axis, const std::int32_t* sums, std::size_t x) {
  const std::int32_t* const at = sums + std::int64_t{axis.lower[x]} * 3;
  const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 3));
  const __m128i slope = _mm_mullo_epi32(_mm_sub_epi32(right, left), _mm_set1_epi32(axis.weight[x]));
  const __m128i sum = _mm_add_epi32(_mm_add_epi32(_mm_slli_epi32(left, kWeightBits), slope),
                                    _mm_set1_epi32(1 << 21));
  const __m128i words = _mm_packus_epi32(_mm_srai_epi32(sum, 2 * kWeightBits), _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

void blend_rgb_columns(const ResizeAxis& axis, const std::int32_t* sums, std::uint8_t* out) {
  const std::size_t last = axis.lower.size() - 1;
  for (std::size_t x = 0; x < last; ++x) {
    const std::int32_t bytes = blend_rgb(axis, sums, x);
    std::memcpy(out + x * 3, &bytes, 4);
  }
  const std::int32_t bytes = blend_rgb(axis, sums, last);
  std::memcpy(out + last * 3, &bytes, 3);
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
  sums_.resize(row_bytes_ + 4);  // blend_rgb_columns() reads so far beyond the last column
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
    blend_rgb_columns(columns_, sums_.data(), out);
  } else {
    blend_grey_columns(columns_, sums_.data(), out);
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
