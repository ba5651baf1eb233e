#include "ps/shard/gradient_sum.h"

#include <cstring>

namespace syncopate::ps {

std::span<const float> sum_gradients(const SumKernels& kernels,
                                     std::span<const EncodedGradient> gradients,
                                     std::int64_t offset, std::int64_t index, std::span<float> sum,
                                     std::span<float> scratch) {
  const std::size_t workers = gradients.size();
  if (workers == 1) return decode_chunk(gradients.front(), offset, sum);
  auto worker = static_cast<std::size_t>(first_addend(index, static_cast<int>(workers)));
  const std::span<const float> first = decode_chunk(gradients[worker], offset, sum);
  if (first.data() != sum.data()) std::memcpy(sum.data(), first.data(), sum.size_bytes());
  for (std::size_t added = 1; added < workers; ++added) {
    worker = worker + 1 == workers ? 0 : worker + 1;
    const std::span<const float> addend = decode_chunk(gradients[worker], offset, scratch);
    kernels.add_f32(sum.data(), addend.data(), static_cast<std::int64_t>(sum.size()));
  }
  return sum;
}

}  // namespace syncopate::ps
