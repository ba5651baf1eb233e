#include "ps/gradient_sum.h"

#include <algorithm>

namespace syncopate {

std::span<const float> sum_gradients(const SumKernels& kernels,
                                     std::span<const std::span<const float>> gradients,
                                     std::int64_t offset, std::int64_t index,
                                     std::span<float> sum) {
  const auto addend = [&](std::size_t worker) {
    return gradients[worker].subspan(static_cast<std::size_t>(offset), sum.size());
  };
  const std::size_t workers = gradients.size();
  if (workers == 1) return addend(0);
  auto worker = static_cast<std::size_t>(first_addend(index, static_cast<int>(workers)));
  std::ranges::copy(addend(worker), sum.begin());
  for (std::size_t added = 1; added < workers; ++added) {
    worker = worker + 1 == workers ? 0 : worker + 1;
    kernels.add_f32(sum.data(), addend(worker).data(), static_cast<std::int64_t>(sum.size()));
  }
  return sum;
}

}  // namespace syncopate
