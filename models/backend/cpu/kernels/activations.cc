// The CPU kernels of the activations. The functions are polynomials and divisions of whole
// vectors; the C library would compute one element at a time.
#include "models/backend/cpu/kernels/exponential.h"
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
Vec sigmoid(Vec x) { return 1.0F / (1.0F + exponential(-x)); }

// Returns tanh(x). Near 0 it is a polynomial: its relative error stays small. Source: Cephes,
// tanhf.
Vec hyperbolic_tangent(Vec x) {
  const Vec square = x * x;
  Vec y = Vec{} - 5.70498872745e-3F;
  y = y * square + 2.06390887954e-2F;
  y = y * square - 5.37397155531e-2F;
  y = y * square + 1.33314422036e-1F;
  y = y * square - 3.33332819422e-1F;
  const Vec small = y * square * x + x;
  const Vec large = 1.0F - 2.0F / (exponential(x + x) + 1.0F);
  return square < 0.390625F ? small : large;  // |x| < 0.625
}

// Returns the error function. Source: Abramowitz and Stegun 1964, 7.1.26: absolute error 1.5e-7.
Vec error_function(Vec x) {
  const Vec size = x < 0.0F ? -x : x;
  const Vec t = 1.0F / (1.0F + 0.3275911F * size);
  Vec y = Vec{} + 1.061405429F;
  y = y * t - 1.453152027F;
  y = y * t + 1.421413741F;
  y = y * t - 0.284496736F;
  y = y * t + 0.254829592F;
  y = 1.0F - y * t * exponential(-size * size);
  return x < 0.0F ? -y : y;
}

// The normal distribution function, which GELU multiplies by x.
Vec normal(Vec x) { return 0.5F * (1.0F + error_function(x * 0.707106781F)); }

Vec value_of(functions::Sigmoid /*f*/, Vec x) { return sigmoid(x); }
Vec slope_of(functions::Sigmoid /*f*/, Vec x) {
  const Vec y = sigmoid(x);
  return y * (1.0F - y);
}

Vec value_of(functions::Tanh /*f*/, Vec x) { return hyperbolic_tangent(x); }
Vec slope_of(functions::Tanh /*f*/, Vec x) {
  const Vec y = hyperbolic_tangent(x);
  return 1.0F - y * y;
}

Vec value_of(functions::Gelu /*f*/, Vec x) { return x * normal(x); }
Vec slope_of(functions::Gelu /*f*/, Vec x) {
  return normal(x) + x * 0.398942280F * exponential(x * x * -0.5F);
}

Vec value_of(functions::Silu /*f*/, Vec x) { return x * sigmoid(x); }
Vec slope_of(functions::Silu /*f*/, Vec x) {
  const Vec y = sigmoid(x);
  return y * (1.0F + x * (1.0F - y));
}

Vec value_of(functions::HardSwish /*f*/, Vec x) {
  Vec gate = x + 3.0F;
  gate = gate < 0.0F ? Vec{} : gate;
  gate = gate > 6.0F ? Vec{} + 6.0F : gate;
  return x * gate * (1.0F / 6.0F);
}
Vec slope_of(functions::HardSwish /*f*/, Vec x) {
  const Vec inner = x * (1.0F / 3.0F) + 0.5F;
  const Vec left = x < -3.0F ? Vec{} : inner;
  return x > 3.0F ? Vec{} + 1.0F : left;
}

Vec value_of(functions::Relu6 /*f*/, Vec x) {
  const Vec positive = positive_part(x);
  return positive > 6.0F ? Vec{} + 6.0F : positive;
}
Vec slope_of(functions::Relu6 /*f*/, Vec x) {
  const Vec left = x > 0.0F ? Vec{} + 1.0F : Vec{};
  return x < 6.0F ? left : Vec{};
}

Vec value_of(functions::HardSigmoid /*f*/, Vec x) {
  const Vec positive = positive_part(x + 3.0F);
  return (positive > 6.0F ? Vec{} + 6.0F : positive) * (1.0F / 6.0F);
}
Vec slope_of(functions::HardSigmoid /*f*/, Vec x) {
  const Vec left = x > -3.0F ? Vec{} + (1.0F / 6.0F) : Vec{};
  return x < 3.0F ? left : Vec{};
}

Vec value_of(functions::LeakyRelu f, Vec x) { return x > 0.0F ? x : f.slope * x; }
Vec slope_of(functions::LeakyRelu f, Vec x) { return x > 0.0F ? Vec{} + 1.0F : Vec{} + f.slope; }

Vec value_of(functions::Clip f, Vec x) {
  const Vec y = x < f.low ? Vec{} + f.low : x;
  return y > f.high ? Vec{} + f.high : y;
}
Vec slope_of(functions::Clip f, Vec x) {
  const Vec left = x >= f.low ? Vec{} + 1.0F : Vec{};
  return x <= f.high ? left : Vec{};
}

Vec value_of(functions::Linear f, Vec x) { return x * f.factor + f.offset; }
Vec slope_of(functions::Linear f, Vec /*x*/) { return Vec{} + f.factor; }

void activate(const ActivationOp& op, const float* x, float* y, std::int64_t count) {
  with_function(op, [&](auto function) {
    for (std::int64_t i = 0; i < count; i += kBlock) {
      store_part(y + i, value_of(function, load_part(x + i, count - i)), count - i);
    }
  });
}

void activate_backward(const ActivationOp& op, const float* x, const float* dy, float* dx,
                       std::int64_t count) {
  with_function(op, [&](auto function) {
    for (std::int64_t i = 0; i < count; i += kBlock) {
      const Vec slope = slope_of(function, load_part(x + i, count - i));
      store_part(dx + i, slope * load_part(dy + i, count - i), count - i);
    }
  });
}

}  // namespace

void fill_activations(CpuKernels& table) {
  table.activate = activate;
  table.activate_backward = activate_backward;
}

}  // namespace syncopate::SYNCOPATE_ISA
