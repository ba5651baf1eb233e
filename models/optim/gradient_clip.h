// Clipping of a step's gradients by their global norm. Source: Pascanu et al. 2013, algorithm 1;
// clip_grad_norm_ of PyTorch.
#pragma once

#include <span>

namespace syncopate {

// Returns the L2 norm, added in double precision and in an order that depends on the number of
// elements only, so that all replicas with equal gradients get the same bits. Zero padding does not
// change it.
double gradient_norm(std::span<const float> gradients) noexcept;

// Returns the factor of gradients of this norm: 1, or what makes the norm about max_norm.
float clip_factor(double norm, double max_norm) noexcept;

// Multiplies all gradients by their clip_factor(). A factor of 1 leaves their bits as they are.
void clip_gradients(std::span<float> gradients, double max_norm) noexcept;

}  // namespace syncopate
