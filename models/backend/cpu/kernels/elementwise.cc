// The CPU kernels for ReLU, sums, products, biases, the mean of all pixels, and layouts.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {

void pixels_to_planar(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                      int channels, const float* scale, const float* shift) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (int c = 0; c < channels; ++c) {
      const std::uint8_t* in = x + i * pixels * channels + c;
      float* out = y + (i * channels + c) * pixels;
      for (std::int64_t p = 0; p < pixels; ++p) {
        out[p] = static_cast<float>(in[p * channels]) * scale[c] + shift[c];
      }
    }
  }
}

void pixels_to_interleaved(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                           int channels, const float* scale, const float* shift) {
  if (channels == 1) {
    const float s = scale[0];
    const float t = shift[0];
    for (std::int64_t i = 0; i < n * pixels; ++i) y[i] = static_cast<float>(x[i]) * s + t;
    return;
  }
  for (std::int64_t i = 0; i < n * pixels; ++i) {
    for (int c = 0; c < channels; ++c) {
      y[i * channels + c] = static_cast<float>(x[i * channels + c]) * scale[c] + shift[c];
    }
  }
}

void relu(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];
}

void relu_backward(const float* dy, const float* y, float* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

void add(const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

void multiply(const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

void multiply_channels(const float* x, const float* factor, float* y, BlockedShape shape,
                       std::int64_t factors) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const Vec scale = load_part(factor + n * factors + b * kBlock, factors - b * kBlock);
      const std::int64_t first = (n * shape.blocks + b) * shape.pixels * kBlock;
      for (std::int64_t p = 0; p < shape.pixels; ++p) {
        store(y + first + p * kBlock, load(x + first + p * kBlock) * scale);
      }
    }
  }
}

void multiply_channels_gradient(const float* dy, const float* x, float* dfactor, BlockedShape shape,
                                std::int64_t factors) {
  constexpr std::int64_t kRun = 256;  // pixels that are summed on their own, to round less
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const std::int64_t first = (n * shape.blocks + b) * shape.pixels * kBlock;
      Vec sum = {};
      for (std::int64_t begin = 0; begin < shape.pixels; begin += kRun) {
        const std::int64_t end = begin + kRun < shape.pixels ? begin + kRun : shape.pixels;
        Vec run = {};
        for (std::int64_t p = begin; p < end; ++p) {
          run += load(dy + first + p * kBlock) * load(x + first + p * kBlock);
        }
        sum += run;
      }
      store_part(dfactor + n * factors + b * kBlock, sum, factors - b * kBlock);
    }
  }
}

void clear_padding(float* y, BlockedShape shape, std::int64_t channels) {
  const int used = static_cast<int>(channels - (shape.blocks - 1) * kBlock);
  for (std::int64_t n = 0; n < shape.n; ++n) {
    float* last = y + (n * shape.blocks + shape.blocks - 1) * shape.pixels * kBlock;
    for (std::int64_t p = 0; p < shape.pixels; ++p) {
      for (int c = used; c < kBlock; ++c) last[p * kBlock + c] = 0.0F;
    }
  }
}

void copy_channels(const float* x, std::int64_t x_blocks, std::int64_t x_first, float* y,
                   std::int64_t y_blocks, std::int64_t y_first, std::int64_t n, std::int64_t pixels,
                   std::int64_t count) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t c = 0;
    while (c < count) {
      // The channels up to the end of a block of either map.
      const std::int64_t from = x_first + c;
      const std::int64_t into = y_first + c;
      std::int64_t width = count - c;
      if (kBlock - from % kBlock < width) width = kBlock - from % kBlock;
      if (kBlock - into % kBlock < width) width = kBlock - into % kBlock;
      const float* in = x + (i * x_blocks + from / kBlock) * pixels * kBlock + from % kBlock;
      float* out = y + (i * y_blocks + into / kBlock) * pixels * kBlock + into % kBlock;
      for (std::int64_t p = 0; p < pixels; ++p) {
        for (std::int64_t k = 0; k < width; ++k) out[p * kBlock + k] = in[p * kBlock + k];
      }
      c += width;
    }
  }
}

void global_average_pool(const float* x, float* y, BlockedShape shape, std::int64_t channels) {
  const float inverse = 1.0F / static_cast<float>(shape.pixels);
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const float* in = x + (n * shape.blocks + b) * shape.pixels * kBlock;
      Vec sum = {};
      for (std::int64_t p = 0; p < shape.pixels; ++p) sum += load(in + p * kBlock);
      for (int c = 0; c < kBlock && b * kBlock + c < channels; ++c) {
        y[n * channels + b * kBlock + c] = sum[c] * inverse;
      }
    }
  }
}

void global_average_pool_backward(const float* dy, float* dx, BlockedShape shape,
                                  std::int64_t channels) {
  const float inverse = 1.0F / static_cast<float>(shape.pixels);
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      float* out = dx + (n * shape.blocks + b) * shape.pixels * kBlock;
      Vec gradient = {};
      for (int c = 0; c < kBlock && b * kBlock + c < channels; ++c) {
        gradient[c] = dy[n * channels + b * kBlock + c] * inverse;
      }
      for (std::int64_t p = 0; p < shape.pixels; ++p) store(out + p * kBlock, gradient);
    }
  }
}

void blocked_to_interleaved(const float* x, float* y, BlockedShape shape, std::int64_t channels) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      for (std::int64_t p = 0; p < shape.pixels; ++p) {
        const float* in = x + ((n * shape.blocks + b) * shape.pixels + p) * kBlock;
        float* out = y + (n * shape.pixels + p) * channels + b * kBlock;
        for (int c = 0; c < kBlock && b * kBlock + c < channels; ++c) out[c] = in[c];
      }
    }
  }
}

void interleaved_to_blocked(const float* x, float* y, BlockedShape shape, std::int64_t channels) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      for (std::int64_t p = 0; p < shape.pixels; ++p) {
        const float* in = x + (n * shape.pixels + p) * channels + b * kBlock;
        float* out = y + ((n * shape.blocks + b) * shape.pixels + p) * kBlock;
        for (int c = 0; c < kBlock; ++c) out[c] = b * kBlock + c < channels ? in[c] : 0.0F;
      }
    }
  }
}

void add_bias(float* y, const float* bias, std::int64_t n, std::int64_t features, bool relu) {
  for (std::int64_t i = 0; i < n; ++i) {
    float* row = y + i * features;
    if (relu) {
      for (std::int64_t f = 0; f < features; ++f) {
        const float v = row[f] + bias[f];
        row[f] = v < 0.0F ? 0.0F : v;
      }
    } else {
      for (std::int64_t f = 0; f < features; ++f) row[f] += bias[f];
    }
  }
}

void bias_gradient(const float* dy, float* dbias, std::int64_t n, std::int64_t features) {
  for (std::int64_t f = 0; f < features; ++f) dbias[f] = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t f = 0; f < features; ++f) dbias[f] += dy[i * features + f];
  }
}

}  // namespace

void fill_elementwise(CpuKernels& table) {
  table.pixels_to_planar = pixels_to_planar;
  table.pixels_to_interleaved = pixels_to_interleaved;
  table.relu = relu;
  table.relu_backward = relu_backward;
  table.add = add;
  table.multiply = multiply;
  table.multiply_channels = multiply_channels;
  table.multiply_channels_gradient = multiply_channels_gradient;
  table.clear_padding = clear_padding;
  table.copy_channels = copy_channels;
  table.global_average_pool = global_average_pool;
  table.global_average_pool_backward = global_average_pool_backward;
  table.blocked_to_interleaved = blocked_to_interleaved;
  table.interleaved_to_blocked = interleaved_to_blocked;
  table.add_bias = add_bias;
  table.bias_gradient = bias_gradient;
}

}  // namespace syncopate::SYNCOPATE_ISA
