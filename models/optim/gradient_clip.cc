#include "models/optim/gradient_clip.h"

#include <cmath>
#include <cstddef>

namespace syncopate {

void NormSums::add(std::span<const float> gradients) noexcept {
  std::array<double, 16> sums = sums_;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto gradient = static_cast<double>(gradients[i]);
    sums[i % sums.size()] += gradient * gradient;
  }
  sums_ = sums;
}

double NormSums::norm() const noexcept {
  double total = 0.0;
  for (const double sum : sums_) total += sum;
  return std::sqrt(total);
}

double gradient_norm(std::span<const float> gradients) noexcept {
  NormSums sums;
  sums.add(gradients);
  return sums.norm();
}

float clip_factor(double norm, double max_norm) noexcept {
  constexpr double kEpsilon = 1e-6;  // as PyTorch has it
  const double factor = max_norm / (norm + kEpsilon);
  return factor < 1.0 || std::isnan(factor) ? static_cast<float>(factor) : 1.0F;
}

void clip_gradients(std::span<float> gradients, double max_norm) noexcept {
  scale_gradients(gradients, clip_factor(gradient_norm(gradients), max_norm));
}

void scale_gradients(std::span<float> gradients, float factor) noexcept {
  if (factor == 1.0F) return;
  for (float& gradient : gradients) gradient *= factor;
}

}  // namespace syncopate
