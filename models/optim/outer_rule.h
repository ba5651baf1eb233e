// The outer step of local updates. In a round every worker trains by itself, starting at the outer
// values x; then one outer step changes x. The displacement, the start values minus the worker's
// values, points against the movement, as a gradient does. So an outer rule is an optimizer, and
// its gradient is the mean of the displacements. Weight decay and clipping belong to the inner
// steps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "models/optim/optimizer.h"

namespace syncopate {

// The constants of an outer rule. D is the mean displacement, v the outer momentum.
struct OuterRuleOptions {
  double learning_rate = 1.0;  // positive
  double momentum = 0.0;       // in [0, 1)
  bool nesterov = false;       // x -= rate * (D + momentum * v) instead of x -= rate * v
  // Whether v shrinks and grows with the inner learning rate, so that after a decay of the inner
  // rate the displacements of earlier rounds do not count too much.
  bool scale_by_rate = false;
  // With a number N above 1, a displacement is one of a single worker and makes an outer step at
  // once, with 1/N of the rate. The momentum joins in with every N-th displacement only: v then
  // takes the mean of the last N. Over N steps, that is one Nesterov step with the mean. Where
  // momentum joined in every time, it would multiply stale displacements.
  std::int64_t momentum_every = 1;
};
inline constexpr std::int64_t kMostMomentumEvery = 1'000'000;

// The slots of v, and of the sum of the displacements since v has changed. They differ from the
// slot of the inner momentum, so that a checkpoint cannot mix them up.
inline constexpr std::string_view kOuterMomentumSlot = "outer_momentum";
inline constexpr std::string_view kOuterSumSlot = "outer_sum";
inline bool is_outer_slot(std::string_view slot) {
  return slot == kOuterMomentumSlot || slot == kOuterSumSlot;
}

struct OuterRuleRow {
  std::string_view name;
  std::string_view help;
  OuterRuleOptions defaults;
  // Whether the workers sum gradients in every step before the first round.
  bool begins_with_sums = false;
  // Whether the setting is written as name:N, with OuterRuleOptions::momentum_every. It is for
  // single displacements only.
  bool has_number = false;
};
// Returns the table of named settings.
std::span<const OuterRuleRow> outer_rules() noexcept;
// Returns the row of a setting, such as "diloco" or "delayed-nesterov:4". Throws UsageError for an
// unknown name, with a list of the known names.
const OuterRuleRow& outer_rule_row(std::string_view setting);
// Returns the default constants of a setting, with its number. Throws UsageError for another form.
OuterRuleOptions outer_rule_defaults(std::string_view setting);

// Makes an outer rule. The constants alone choose the formula: without momentum there is no slot,
// whatever the name of the setting. Throws UsageError for a constant out of range, and for Nesterov
// momentum that is scaled by the rate, which no paper defines.
std::unique_ptr<Optimizer> make_outer_rule(const OuterRuleOptions& options);

// Returns the input of outer step `round`, counted from 1. `round` says which displacements are the
// N-th ones. inner_rate: the inner learning rate of
// the round's last step. previous_inner_rate: the same rate of the previous round; 0 in the first
// round.
UpdateStep outer_step(const OuterRuleOptions& options, std::int64_t round, float inner_rate,
                      float previous_inner_rate);

// Returns the weight of a displacement in a mean: its part of all samples, 0 if there are none.
float displacement_weight(std::int64_t samples, std::int64_t all_samples) noexcept;

// out = weight * (start - now). All spans have equal size. Throws ShapeError when sizes differ.
void displacement(std::span<float> out, std::span<const float> start, std::span<const float> now,
                  float weight);

}  // namespace syncopate
