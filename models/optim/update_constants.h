// One update of a rule in numbers: what a step's scalars come to, folded in double precision.
#pragma once

#include <cstdint>

namespace syncopate {

struct SgdConstants {
  float learning_rate;
  float weight_decay;
  float momentum;  // unused by sgd
};

struct AdamConstants {
  float weight_decay;  // added to the gradient, times the value
  float value_scale;   // the value is multiplied by this first: 1 - learning rate * decoupled decay
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float step_size;          // learning rate / (1 - beta1^t)
  float denominator_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

enum class UpdateRule : std::uint8_t { kSgd, kMomentum, kNesterov, kAdam };

// Every operation that they enter is an exactly rounded f32 one, none contracted, results too small
// for a normal exponent become zero: whoever keeps to that has the same bits. The formulas are
// those of kernels/optimizer_kernels.cc.
struct UpdateConstants {
  UpdateRule rule = UpdateRule::kSgd;
  SgdConstants sgd{};    // of the first three
  AdamConstants adam{};  // of the last
};

}  // namespace syncopate
