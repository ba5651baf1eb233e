#include "ps/shard/delay_compensation.h"

#include <cmath>
#include <cstddef>

#include "models/base/denormals.h"

namespace syncopate::ps {
namespace {

// Added to the mean square inside the root. Source: the code of the authors, Zheng et al. 2017.
constexpr float kEpsilon = 1e-7F;

}  // namespace

std::span<const float> compensate(const DelayCompensation& compensation,
                                  std::span<const float> gradient, std::span<const float> values,
                                  std::span<float> result) {
  const FlushDenormals flush;
  const std::size_t n = gradient.size();
  const std::span<float> square = compensation.mean_square;
  const std::span<const float> read = compensation.read;
  const float decay = compensation.mean_square_decay;
  if (!square.empty()) {
    for (std::size_t i = 0; i < n; ++i) {
      square[i] = decay * square[i] + (1.0F - decay) * gradient[i] * gradient[i];
    }
  }
  if (read.empty()) return gradient;
  const float lambda = compensation.lambda;
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    const float scale = square.empty() ? lambda : lambda / std::sqrt(square[i] + kEpsilon);
    result[i] = g + scale * g * g * (values[i] - read[i]);
  }
  return result;
}

}  // namespace syncopate::ps
