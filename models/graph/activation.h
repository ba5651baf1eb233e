// The element-wise functions other than ReLU. They are never fused into another operation's group.
// This header uses no templates of the standard library, because the kernels include it and are
// compiled once per instruction set: the linker could keep a copy of a template that other CPUs
// cannot run.
#pragma once

#include <cstdint>

namespace syncopate {

// The kinds of element-wise functions other than ReLU. Hard sigmoid is min(max(x + 3, 0), 6) / 6,
// as Hardsigmoid of PyTorch and hard_sigmoid of Keras 3. Sources: Hendrycks and Gimpel 2016 (GELU,
// with the error function, not the approximation by tanh), Elfwing et al. 2017 (SiLU: x *
// sigmoid(x)), Howard et al. 2019 (hard swish: x * min(max(x + 3, 0), 6) / 6), Maas et al. 2013
// (leaky ReLU), Krizhevsky 2010 (ReLU6: min(max(x, 0), 6)).
enum class Activation : std::uint8_t {
  kSigmoid,
  kTanh,
  kGelu,
  kSilu,
  kHardSwish,
  kRelu6,
  kHardSigmoid,
  kLeakyRelu,
  kClip,
  kLinear
};

// An element-wise function other than ReLU.
struct ActivationOp {
  Activation kind = Activation::kSilu;
  // Only for kLeakyRelu: y = x if x > 0 and slope * x otherwise, as LeakyReLU of PyTorch.
  float slope = 0.01F;
  // Only for kClip: y = min(max(x, low), high). The derivative at both bounds is 1, as in clamp of
  // PyTorch.
  float low = 0.0F;
  float high = 0.0F;
  // Only for kLinear: y = factor * x + offset.
  float factor = 1.0F;
  float offset = 0.0F;
};

// Returns whether the function maps 0 to 0.
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

// Each activation as a type. Code that computes activations overloads value_of(function, x) and
// slope_of(function, x) for every type; if an overload is missing, the code does not compile.
namespace functions {
struct Sigmoid {};
struct Tanh {};
struct Gelu {};
struct Silu {};
struct HardSwish {};
struct Relu6 {};
struct HardSigmoid {};
struct LeakyRelu {
  float slope;
};
struct Clip {
  float low;
  float high;
};
struct Linear {
  float factor;
  float offset;
};
}  // namespace functions

// Calls body(function), where `function` is the type above that belongs to op.kind, and returns the
// result.
template <typename Body>
auto with_function(const ActivationOp& op, const Body& body) {
  switch (op.kind) {
    case Activation::kSigmoid:
      return body(functions::Sigmoid{});
    case Activation::kTanh:
      return body(functions::Tanh{});
    case Activation::kGelu:
      return body(functions::Gelu{});
    case Activation::kSilu:
      return body(functions::Silu{});
    case Activation::kHardSwish:
      return body(functions::HardSwish{});
    case Activation::kRelu6:
      return body(functions::Relu6{});
    case Activation::kHardSigmoid:
      return body(functions::HardSigmoid{});
    case Activation::kLeakyRelu:
      return body(functions::LeakyRelu{op.slope});
    case Activation::kClip:
      return body(functions::Clip{op.low, op.high});
    case Activation::kLinear:
      break;
  }
  return body(functions::Linear{op.factor, op.offset});
}

}  // namespace syncopate
