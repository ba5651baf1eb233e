// The CPU kernels of pooling and of ResNet's parameter-free shortcut, over blocked maps.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
// The rows or columns of a pooling window that lie inside a map, relative to the window's start.
struct Extent {
  std::int64_t begin;
  std::int64_t end;
};

Extent inside(std::int64_t first, int window, std::int64_t size) {
  return {first < 0 ? -first : 0, first + window > size ? size - first : window};
}

void max_pool(const float* x, float* y, std::uint8_t* winner, const PoolShape& shape) {
  for (std::int64_t map = 0; map < shape.n * shape.blocks; ++map) {
    const float* in = x + map * shape.in_h * shape.in_w * kBlock;
    for (std::int64_t h = 0; h < shape.out_h; ++h) {
      const std::int64_t top = h * shape.stride - shape.pad;
      const Extent rows = inside(top, shape.window, shape.in_h);
      for (std::int64_t w = 0; w < shape.out_w; ++w) {
        const std::int64_t left = w * shape.stride - shape.pad;
        const Extent columns = inside(left, shape.window, shape.in_w);
        Vec best = load(in + ((top + rows.begin) * shape.in_w + left + columns.begin) * kBlock);
        IntVec place = IntVec{} + static_cast<int>(rows.begin * shape.window + columns.begin);
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          for (std::int64_t s = columns.begin; s < columns.end; ++s) {
            const Vec v = load(in + ((top + r) * shape.in_w + left + s) * kBlock);
            const IntVec larger = v > best;
            best = larger ? v : best;
            place = larger ? IntVec{} + static_cast<int>(r * shape.window + s) : place;
          }
        }
        const std::int64_t out = ((map * shape.out_h + h) * shape.out_w + w) * kBlock;
        store(y + out, best);
        if (winner != nullptr) store_bytes(winner + out, place);
      }
    }
  }
}

void max_pool_backward(const float* dy, const std::uint8_t* winner, float* dx,
                       const PoolShape& shape) {
  const std::int64_t in_size = shape.in_h * shape.in_w * kBlock;
  for (std::int64_t map = 0; map < shape.n * shape.blocks; ++map) {
    float* out = dx + map * in_size;
    for (std::int64_t i = 0; i < in_size; i += kBlock) store(out + i, Vec{});
    for (std::int64_t h = 0; h < shape.out_h; ++h) {
      const std::int64_t top = h * shape.stride - shape.pad;
      const Extent rows = inside(top, shape.window, shape.in_h);
      for (std::int64_t w = 0; w < shape.out_w; ++w) {
        const std::int64_t left = w * shape.stride - shape.pad;
        const Extent columns = inside(left, shape.window, shape.in_w);
        const std::int64_t at = ((map * shape.out_h + h) * shape.out_w + w) * kBlock;
        const Vec gradient = load(dy + at);
        const IntVec place = load_bytes(winner + at);
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          for (std::int64_t s = columns.begin; s < columns.end; ++s) {
            float* pixel = out + ((top + r) * shape.in_w + left + s) * kBlock;
            store(pixel, load(pixel) +
                             (place == static_cast<int>(r * shape.window + s) ? gradient : Vec{}));
          }
        }
      }
    }
  }
}

void average_pool(const float* x, float* y, const PoolShape& shape) {
  const float inverse = 1.0F / static_cast<float>(shape.window * shape.window);
  for (std::int64_t map = 0; map < shape.n * shape.blocks; ++map) {
    const float* in = x + map * shape.in_h * shape.in_w * kBlock;
    for (std::int64_t h = 0; h < shape.out_h; ++h) {
      const std::int64_t top = h * shape.stride - shape.pad;
      const Extent rows = inside(top, shape.window, shape.in_h);
      for (std::int64_t w = 0; w < shape.out_w; ++w) {
        const std::int64_t left = w * shape.stride - shape.pad;
        const Extent columns = inside(left, shape.window, shape.in_w);
        Vec sum = {};
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          for (std::int64_t s = columns.begin; s < columns.end; ++s) {
            sum += load(in + ((top + r) * shape.in_w + left + s) * kBlock);
          }
        }
        store(y + ((map * shape.out_h + h) * shape.out_w + w) * kBlock, sum * inverse);
      }
    }
  }
}

void average_pool_backward(const float* dy, float* dx, const PoolShape& shape) {
  const float inverse = 1.0F / static_cast<float>(shape.window * shape.window);
  const std::int64_t in_size = shape.in_h * shape.in_w * kBlock;
  for (std::int64_t map = 0; map < shape.n * shape.blocks; ++map) {
    float* out = dx + map * in_size;
    for (std::int64_t i = 0; i < in_size; i += kBlock) store(out + i, Vec{});
    for (std::int64_t h = 0; h < shape.out_h; ++h) {
      const std::int64_t top = h * shape.stride - shape.pad;
      const Extent rows = inside(top, shape.window, shape.in_h);
      for (std::int64_t w = 0; w < shape.out_w; ++w) {
        const std::int64_t left = w * shape.stride - shape.pad;
        const Extent columns = inside(left, shape.window, shape.in_w);
        const Vec gradient =
            load(dy + ((map * shape.out_h + h) * shape.out_w + w) * kBlock) * inverse;
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          for (std::int64_t s = columns.begin; s < columns.end; ++s) {
            float* pixel = out + ((top + r) * shape.in_w + left + s) * kBlock;
            store(pixel, load(pixel) + gradient);
          }
        }
      }
    }
  }
}

void shortcut(const float* x, float* y, const PoolShape& shape, std::int64_t in_blocks) {
  const std::int64_t out_size = shape.out_h * shape.out_w * kBlock;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      float* out = y + (n * shape.blocks + b) * out_size;
      if (b >= in_blocks) {
        for (std::int64_t i = 0; i < out_size; i += kBlock) store(out + i, Vec{});
        continue;
      }
      const float* in = x + (n * in_blocks + b) * shape.in_h * shape.in_w * kBlock;
      for (std::int64_t h = 0; h < shape.out_h; ++h) {
        for (std::int64_t w = 0; w < shape.out_w; ++w) {
          store(out + (h * shape.out_w + w) * kBlock,
                load(in + (h * shape.stride * shape.in_w + w * shape.stride) * kBlock));
        }
      }
    }
  }
}

void shortcut_backward(const float* dy, float* dx, const PoolShape& shape, std::int64_t in_blocks) {
  const std::int64_t in_size = shape.in_h * shape.in_w * kBlock;
  const std::int64_t out_size = shape.out_h * shape.out_w * kBlock;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < in_blocks; ++b) {
      float* in = dx + (n * in_blocks + b) * in_size;
      const float* out = dy + (n * shape.blocks + b) * out_size;
      for (std::int64_t i = 0; i < in_size; i += kBlock) store(in + i, Vec{});
      for (std::int64_t h = 0; h < shape.out_h; ++h) {
        for (std::int64_t w = 0; w < shape.out_w; ++w) {
          store(in + (h * shape.stride * shape.in_w + w * shape.stride) * kBlock,
                load(out + (h * shape.out_w + w) * kBlock));
        }
      }
    }
  }
}

}  // namespace

void fill_pooling(CpuKernels& table) {
  table.max_pool = max_pool;
  table.max_pool_backward = max_pool_backward;
  table.average_pool = average_pool;
  table.average_pool_backward = average_pool_backward;
  table.shortcut = shortcut;
  table.shortcut_backward = shortcut_backward;
}

}  // namespace syncopate::SYNCOPATE_ISA
