// Clipping of a step's gradients by their global norm. Source: Pascanu et al. 2013, algorithm 1;
// clip_grad_norm_ of PyTorch.
#pragma once

#include <array>
#include <span>

namespace syncopate {

// Partial sums of the squares behind a norm. There are several, so that additions do not wait for
// each other.
class NormSums {
 public:
  // Adds gradients that follow the gradients of earlier calls. The number of gradients of each call
  // but the last is a multiple of 16.
  void add(std::span<const float> gradients) noexcept;
  double norm() const noexcept;
  std::span<double> all() noexcept { return sums_; }  // to pass them on

 private:
  std::array<double, 16> sums_{};
};

// Returns the L2 norm, added in double precision and in an order that depends on the number of
// elements only, so that all replicas with equal gradients get the same bits. Zero padding does not
// change it.
double gradient_norm(std::span<const float> gradients) noexcept;

// Returns the factor to multiply gradients of this norm by: 1, or a smaller one that brings the
// norm to about max_norm.
float clip_factor(double norm, double max_norm) noexcept;

// Multiplies all gradients by a factor. A factor of 1 leaves their bits as they are.
void scale_gradients(std::span<float> gradients, float factor) noexcept;
// Multiplies all gradients by their clip_factor().
void clip_gradients(std::span<float> gradients, double max_norm) noexcept;

}  // namespace syncopate
