#include "models/optim/outer_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "models/base/denormals.h"
#include "models/base/errors.h"
#include "models/base/flag_rules.h"
#include "models/base/isa.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

// The sources of the formulas: Stich 2019 for the average; Lin et al. 2018, section 3, for
// post-local SGD; Wang et al. 2020, algorithm 1, for SlowMo; Douillard et al. 2023, algorithm 1,
// for DiLoCo; Liu et al. 2024, algorithm 3 with c = 0, for delayed Nesterov.
constexpr std::array kOuterRules = {
    OuterRuleRow{.name = "average", .help = "the mean of the workers' values", .defaults = {}},
    OuterRuleRow{.name = "post-local",
                 .help = "the same mean from epoch --local-from on; until then, the workers sum "
                         "gradients in every step",
                 .defaults = {},
                 .begins_with_sums = true},
    OuterRuleRow{.name = "slowmo",
                 .help = "slow momentum, scaled by the inner learning rate",
                 .defaults = {.momentum = 0.5, .scale_by_rate = true}},
    OuterRuleRow{.name = "diloco",
                 .help = "Nesterov momentum",
                 .defaults = {.learning_rate = 0.7, .momentum = 0.9, .nesterov = true}},
    OuterRuleRow{.name = "delayed-nesterov",
                 .help = "the same for --push displacement, with momentum in every N-th push only",
                 .defaults = {.learning_rate = 0.7, .momentum = 0.9, .nesterov = true},
                 .has_number = true},
};

class OuterRule final : public Optimizer {
 public:
  explicit OuterRule(const OuterRuleOptions& options)
      : rule_(options),
        options_{.name = "outer",
                 .momentum = options.momentum,
                 .nesterov = options.nesterov,
                 .weight_decay = 0.0},
        kernels_(optimizer_kernels(detect_isa())) {}

  const OptimizerOptions& options() const noexcept override { return options_; }
  std::span<const std::string_view> slot_names() const noexcept override {
    return std::span(kSlotNames).first(rule_.momentum == 0.0 ? 0 : 1);
  }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    const auto n = static_cast<std::int64_t>(values.size());
    const UpdateConstants now = constants(step, decays);
    if (now.rule == UpdateRule::kSgd) {
      return kernels_.sgd(n, values.data(), gradients.data(), now.sgd);
    }
    const auto kernel = now.rule == UpdateRule::kNesterov ? kernels_.nesterov : kernels_.momentum;
    kernel(n, values.data(), gradients.data(), slots[0].data(), now.sgd);
  }

  UpdateConstants constants(const UpdateStep& step, bool /*decays*/) const override {
    UpdateConstants constants{
        .rule = UpdateRule::kSgd,
        .sgd = {.learning_rate = step.learning_rate, .weight_decay = 0.0F, .momentum = 0.0F}};
    if (rule_.momentum == 0.0) return constants;
    constants.rule = rule_.nesterov ? UpdateRule::kNesterov : UpdateRule::kMomentum;
    constants.sgd.momentum = static_cast<float>(rule_.momentum * step.momentum_scale);
    return constants;
  }

 private:
  static constexpr std::array<std::string_view, 1> kSlotNames = {kOuterMomentumSlot};

  const OuterRuleOptions rule_;
  const OptimizerOptions options_;
  const OptimizerKernels& kernels_;
};

// Nesterov momentum that changes with every N-th displacement. UpdateStep::step counts them.
class DelayedNesterov final : public Optimizer {
 public:
  explicit DelayedNesterov(const OuterRuleOptions& options)
      : every_(options.momentum_every),
        options_{
            .name = "outer", .momentum = options.momentum, .nesterov = true, .weight_decay = 0.0} {}

  const OptimizerOptions& options() const noexcept override { return options_; }
  std::span<const std::string_view> slot_names() const noexcept override { return kSlotNames; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool /*decays*/) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    const float rate = step.learning_rate;
    const auto beta = static_cast<float>(options_.momentum);
    const auto n = static_cast<float>(every_);
    const bool joins_in = step.step % every_ == 0;
    float* const momentum = slots[0].data();
    float* const sum = slots[1].data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float part = gradients[i] / n;
      sum[i] += gradients[i];
      if (!joins_in) {
        values[i] -= rate * part;
        continue;
      }
      momentum[i] = beta * momentum[i] + sum[i] / n;
      values[i] -= rate * (part + beta * momentum[i]);
      sum[i] = 0.0F;
    }
  }
  UpdateConstants constants(const UpdateStep& /*step*/, bool /*decays*/) const override {
    throw InternalError("momentum is delayed on the host");
  }

 private:
  static constexpr std::array<std::string_view, 2> kSlotNames = {kOuterMomentumSlot, kOuterSumSlot};

  const std::int64_t every_;
  const OptimizerOptions options_;
};

}  // namespace

std::span<const OuterRuleRow> outer_rules() noexcept { return kOuterRules; }

const OuterRuleRow& outer_rule_row(std::string_view setting) {
  const std::string_view name = setting.substr(0, setting.find(':'));
  const auto* const row = std::ranges::find(kOuterRules, name, &OuterRuleRow::name);
  if (row != kOuterRules.end()) return *row;
  throw UsageError(fmt::format("--outer {}: no such outer step; choose one of {}", setting,
                               fmt::join(names_of(outer_rules()), ", ")));
}

OuterRuleOptions outer_rule_defaults(std::string_view setting) {
  const OuterRuleRow& row = outer_rule_row(setting);
  OuterRuleOptions options = row.defaults;
  const std::string_view number = setting.substr(row.name.size());
  if (!row.has_number && number.empty()) return options;
  const auto every = number.empty() ? std::nullopt : parse_number<std::int64_t>(number.substr(1));
  if (!row.has_number || !every || *every < 1 || *every > kMostMomentumEvery) {
    throw UsageError(
        row.has_number
            ? fmt::format("--outer {}: expected {}:N with a whole number N from 1 to {}; try the "
                          "number of workers",
                          setting, row.name, kMostMomentumEvery)
            : fmt::format("--outer {}: {} has no number", setting, row.name));
  }
  options.momentum_every = *every;
  return options;
}

std::unique_ptr<Optimizer> make_outer_rule(const OuterRuleOptions& options) {
  if (!(options.learning_rate > 0.0) || !std::isfinite(options.learning_rate)) {
    throw UsageError(
        fmt::format("--outer-learning-rate {}: expected a positive number", options.learning_rate));
  }
  if (!(options.momentum >= 0.0 && options.momentum < 1.0)) {
    throw UsageError(
        fmt::format("--outer-momentum {}: expected a number in [0, 1)", options.momentum));
  }
  if (options.nesterov && options.scale_by_rate && options.momentum > 0.0) {
    throw UsageError(
        "--outer-scale-by-rate requires a momentum without --outer-nesterov; omit one of the two");
  }
  if (options.momentum_every < 1 || options.momentum_every > kMostMomentumEvery) {
    throw UsageError(fmt::format("--outer: momentum in every push of {}, expected 1 to {}",
                                 options.momentum_every, kMostMomentumEvery));
  }
  if (options.momentum_every > 1) return std::make_unique<DelayedNesterov>(options);
  return std::make_unique<OuterRule>(options);
}

UpdateStep outer_step(const OuterRuleOptions& options, std::int64_t round, float inner_rate,
                      float previous_inner_rate) {
  UpdateStep step{.learning_rate = static_cast<float>(options.learning_rate), .step = round};
  if (!options.scale_by_rate) return step;
  // SlowMo adds D / rate to its momentum u and subtracts rate * u from x. Here v is rate * u, so a
  // change of the rate changes v, and D is not divided.
  step.momentum_scale = previous_inner_rate > 0.0F ? static_cast<double>(inner_rate) /
                                                         static_cast<double>(previous_inner_rate)
                                                   : 0.0;
  return step;
}

float displacement_weight(std::int64_t samples, std::int64_t all_samples) noexcept {
  if (all_samples == 0) return 0.0F;
  return static_cast<float>(static_cast<double>(samples) / static_cast<double>(all_samples));
}

void displacement(std::span<float> out, std::span<const float> start, std::span<const float> now,
                  float weight) {
  if (start.size() != out.size() || now.size() != out.size()) {
    throw ShapeError(fmt::format("displacement: found {} start values and {} values; expected {}",
                                 start.size(), now.size(), out.size()));
  }
  const FlushDenormals flush;
  optimizer_kernels(detect_isa())
      .displacement(static_cast<std::int64_t>(out.size()), out.data(), start.data(), now.data(),
                    weight);
}

}  // namespace syncopate
