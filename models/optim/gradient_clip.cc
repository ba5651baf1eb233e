#include "models/optim/gradient_clip.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace syncopate {

double gradient_norm(std::span<const float> gradients) noexcept {
  // Several sums, because one alone would wait for each addition before the next.
  std::array<double, 16> sums{};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto gradient = static_cast<double>(gradients[i]);
    sums[i % sums.size()] += gradient * gradient;
  }
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

float clip_factor(double norm, double max_norm) noexcept {
  constexpr double kEpsilon = 1e-6;  // as PyTorch has it
  const double factor = max_norm / (norm + kEpsilon);
  return factor < 1.0 || std::isnan(factor) ? static_cast<float>(factor) : 1.0F;
}

void clip_gradients(std::span<float> gradients, double max_norm) noexcept {
  const float factor = clip_factor(gradient_norm(gradients), max_norm);
  if (factor == 1.0F) return;
  for (float& gradient : gradients) gradient *= factor;
}

}  // namespace syncopate
