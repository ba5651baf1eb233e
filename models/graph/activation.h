// The functions, element by element, that groups of other operations do not join. A header of its
// own, without a library's templates: the kernels that are compiled once per instruction set
// include it.
#pragma once

#include <cstdint>

namespace syncopate {

// Sources: Hendrycks and Gimpel 2016 (GELU, with the error function, not the approximation by
// tanh), Elfwing et al. 2017 (SiLU: x * sigmoid(x)), Howard et al. 2019 (hard swish: x * min(max(x
// + 3, 0), 6) / 6), Krizhevsky 2010 (ReLU6: min(max(x, 0), 6)). Hard sigmoid: min(max(x + 3, 0), 6)
// / 6, as Hardsigmoid of PyTorch and hard_sigmoid of Keras 3.
enum class Activation : std::uint8_t {
  kSigmoid,
  kTanh,
  kGelu,
  kSilu,
  kHardSwish,
  kRelu6,
  kHardSigmoid,
  kClip,
  kLinear
};

// A function other than ReLU, element by element.
struct ActivationOp {
  Activation kind = Activation::kSilu;
  // kClip alone: y = min(max(x, low), high), with the slope 1 at both bounds, as clamp of PyTorch.
  float low = 0.0F;
  float high = 0.0F;
  // kLinear alone: y = factor * x + offset.
  float factor = 1.0F;
  float offset = 0.0F;
};

// Returns whether the function of 0 is 0.
constexpr bool keeps_zero(const ActivationOp& op) noexcept {
  switch (op.kind) {
    case Activation::kSigmoid:
    case Activation::kHardSigmoid:
      return false;
    case Activation::kClip:
      return op.low <= 0.0F && op.high >= 0.0F;
    case Activation::kLinear:
      return op.offset == 0.0F;
    default:
      return true;
  }
}

}  // namespace syncopate
