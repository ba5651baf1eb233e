// Upsampling of blocked maps by a whole number.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
// The two rows, or columns, between which a row of the output lies, and the share of the second.
struct Between {
  std::int64_t first;
  std::int64_t second;
  float share;
};

// Row `out` lies at (out + 0.5) / scale - 0.5, but not in front of the first row nor behind the
// last.
Between between(std::int64_t out, int scale, std::int64_t size) {
  const std::int64_t whole = std::int64_t{2} * scale;
  const std::int64_t place = 2 * out + 1 - scale;  // times 2 * scale
  if (place <= 0) return {0, 0, 0.0F};
  const std::int64_t first = place / whole;
  if (first + 1 >= size) return {size - 1, size - 1, 0.0F};
  return {first, first + 1, static_cast<float>(place % whole) / static_cast<float>(whole)};
}

// Calls visit(pixel of the output, pixel of the input, weight) for each pixel of the input that a
// pixel of a bilinear output depends on.
template <typename Visit>
void for_each_bilinear(const UpsampleShape& shape, const Visit& visit) {
  for (std::int64_t h = 0; h < shape.h * shape.scale; ++h) {
    const Between rows = between(h, shape.scale, shape.h);
    for (std::int64_t w = 0; w < shape.w * shape.scale; ++w) {
      const Between columns = between(w, shape.scale, shape.w);
      const std::int64_t out = h * shape.w * shape.scale + w;
      const float bottom = rows.share;
      const float right = columns.share;
      visit(out, rows.first * shape.w + columns.first, (1.0F - bottom) * (1.0F - right));
      if (right > 0.0F) visit(out, rows.first * shape.w + columns.second, (1.0F - bottom) * right);
      if (bottom > 0.0F) visit(out, rows.second * shape.w + columns.first, bottom * (1.0F - right));
      if (bottom > 0.0F && right > 0.0F) {
        visit(out, rows.second * shape.w + columns.second, bottom * right);
      }
    }
  }
}

// Calls visit(pixel of the output, pixel of the input that it repeats).
template <typename Visit>
void for_each_repeated(const UpsampleShape& shape, const Visit& visit) {
  std::int64_t out = 0;
  for (std::int64_t h = 0; h < shape.h * shape.scale; ++h) {
    const std::int64_t row = h / shape.scale * shape.w;
    for (std::int64_t w = 0; w < shape.w; ++w) {
      for (int s = 0; s < shape.scale; ++s) visit(out++, row + w);
    }
  }
}

void upsample(const float* x, float* y, const UpsampleShape& shape) {
  const std::int64_t in_size = shape.h * shape.w * kBlock;
  const std::int64_t out_size = in_size * shape.scale * shape.scale;
  for (std::int64_t map = 0; map < shape.n * shape.blocks; ++map) {
    const float* in = x + map * in_size;
    float* out = y + map * out_size;
    if (shape.is_bilinear) {
      for (std::int64_t i = 0; i < out_size; i += kBlock) store(out + i, Vec{});
      for_each_bilinear(shape, [&](std::int64_t to, std::int64_t from, float weight) {
        store(out + to * kBlock, load(out + to * kBlock) + load(in + from * kBlock) * weight);
      });
    } else {
      for_each_repeated(shape, [&](std::int64_t to, std::int64_t from) {
        store(out + to * kBlock, load(in + from * kBlock));
      });
    }
  }
}

void upsample_backward(const float* dy, float* dx, const UpsampleShape& shape) {
  const std::int64_t in_size = shape.h * shape.w * kBlock;
  const std::int64_t out_size = in_size * shape.scale * shape.scale;
  for (std::int64_t map = 0; map < shape.n * shape.blocks; ++map) {
    float* in = dx + map * in_size;
    const float* out = dy + map * out_size;
    for (std::int64_t i = 0; i < in_size; i += kBlock) store(in + i, Vec{});
    const auto add = [&](std::int64_t to, std::int64_t from, float weight) {
      store(in + from * kBlock, load(in + from * kBlock) + load(out + to * kBlock) * weight);
    };
    if (shape.is_bilinear) {
      for_each_bilinear(shape, add);
    } else {
      for_each_repeated(shape, [&](std::int64_t to, std::int64_t from) { add(to, from, 1.0F); });
    }
  }
}

}  // namespace

void fill_upsampling(CpuKernels& table) {
  table.upsample = upsample;
  table.upsample_backward = upsample_backward;
}

}  // namespace syncopate::SYNCOPATE_ISA
