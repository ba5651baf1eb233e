// Clips the gradients of a step by their global norm. Source: Pascanu et al. 2013, algorithm 1;
// clip_grad_norm_ of PyTorch.
#pragma once

#include <array>
#include <span>

namespace syncopate {

// Computes a norm from 16 partial sums of squares. With several sums, an addition need not wait for
// the previous addition.
class NormSums {
 public:
  // Adds the next gradients to the sums. In every call except the last, their number must be a
  // multiple of 16.
  void add(std::span<const float> gradients) noexcept;
  double norm() const noexcept;
  std::span<double> all() noexcept { return sums_; }  // for sending the sums to another stage

 private:
  std::array<double, 16> sums_{};
};

// Returns the L2 norm of the gradients. The squares are added in double precision, in an order that
// depends only on the number of elements, so replicas with equal gradients get the same bits. Zero
// padding does not change the norm.
double gradient_norm(std::span<const float> gradients) noexcept;

// Returns the factor to multiply gradients of this norm by: 1, or a smaller factor that reduces the
// norm to about max_norm.
float clip_factor(double norm, double max_norm) noexcept;

// Multiplies all gradients by a factor. A factor of 1 does not change their bits.
void scale_gradients(std::span<float> gradients, float factor) noexcept;
// Scales the gradients by the clip_factor() of their norm.
void clip_gradients(std::span<float> gradients, double max_norm) noexcept;

}  // namespace syncopate
