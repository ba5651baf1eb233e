// Softmax over the channels of each pixel.
#include "models/backend/cpu/kernels/channel_rows.h"
#include "models/backend/cpu/kernels/exponential.h"
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {

// Source: the maximum is subtracted first, Goodfellow et al. 2016, section 4.1.
void softmax(const float* x, float* y, const ChannelRows& shape) {
  const Steps steps(shape);
  for_each_pixel(shape, steps, [&](std::int64_t first, std::int64_t /*pixel*/) {
    float most = x[first];
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const float value = x[first + c / kBlock * steps.block + c % kBlock];
      if (value > most) most = value;
    }
    double sum = 0.0;
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const std::int64_t left = shape.channels - b * kBlock;
      const std::int64_t at = first + b * steps.block;
      const Vec power = first_of(exponential(load_part(x + at, left) - most), left);
      // A whole block of a map is stored: the channels that pad it become zero.
      store_part(y + at, power, shape.is_blocked ? kBlock : left);
      sum += sum_of(power);
    }
    const auto inverse = static_cast<float>(1.0 / sum);
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const std::int64_t left = shape.channels - b * kBlock;
      float* const block = y + first + b * steps.block;
      store_part(block, load_part(block, left) * inverse, left);
    }
  });
}

void softmax_backward(const float* y, const float* dy, float* dx, const ChannelRows& shape) {
  const Steps steps(shape);
  for_each_pixel(shape, steps, [&](std::int64_t first, std::int64_t /*pixel*/) {
    double sum = 0.0;
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const std::int64_t left = shape.channels - b * kBlock;
      const std::int64_t at = first + b * steps.block;
      sum += sum_of(first_of(load_part(y + at, left) * load_part(dy + at, left), left));
    }
    const auto product = static_cast<float>(sum);
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const std::int64_t left = shape.channels - b * kBlock;
      const std::int64_t at = first + b * steps.block;
      const Vec slope = load_part(dy + at, left) - product;
      store_part(dx + at, load_part(y + at, left) * slope, left);
    }
  });
}

}  // namespace

void fill_softmax(CpuKernels& table) {
  table.softmax = softmax;
  table.softmax_backward = softmax_backward;
}

}  // namespace syncopate::SYNCOPATE_ISA
