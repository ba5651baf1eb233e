#include "models/optim/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/denormals.h"
#include "models/base/errors.h"
#include "models/base/flag_rules.h"
#include "models/base/isa.h"
#include "models/optim/kernels/optimizer_kernels.h"

namespace syncopate {
namespace {

// The rules of plain gradient descent and momentum. The learning rate multiplies the buffer of
// momentum, not the gradient that is added to it, so a change of the rate takes effect at once.
// Source: Sutskever et al. 2013 in the form of torch.optim.SGD with dampening 0.
SgdConstants sgd_constants(const OptimizerOptions& options, const UpdateStep& step, bool decays) {
  return {.learning_rate = step.learning_rate,
          .weight_decay = decays ? static_cast<float>(options.weight_decay) : 0.0F,
          .momentum = static_cast<float>(options.momentum)};
}

// An optimizer with the kernels for this machine.
class KernelOptimizer : public Optimizer {
 public:
  explicit KernelOptimizer(const OptimizerOptions& options)
      : options_(options), kernels_(optimizer_kernels(detect_isa())) {}
  const OptimizerOptions& options() const noexcept override { return options_; }

 protected:
  const OptimizerOptions options_;
  const OptimizerKernels& kernels_;
};

class Sgd final : public KernelOptimizer {
 public:
  using KernelOptimizer::KernelOptimizer;

  std::span<const std::string_view> slot_names() const noexcept override { return {}; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    kernels_.sgd(static_cast<std::int64_t>(values.size()), values.data(), gradients.data(),
                 sgd_constants(options_, step, decays));
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    return {.rule = UpdateRule::kSgd, .sgd = sgd_constants(options_, step, decays)};
  }
};

class Momentum final : public KernelOptimizer {
 public:
  using KernelOptimizer::KernelOptimizer;

  std::span<const std::string_view> slot_names() const noexcept override { return kSlotNames; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    const auto kernel = options_.nesterov ? kernels_.nesterov : kernels_.momentum;
    kernel(static_cast<std::int64_t>(values.size()), values.data(), gradients.data(),
           slots[0].data(), sgd_constants(options_, step, decays));
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    return {.rule = options_.nesterov ? UpdateRule::kNesterov : UpdateRule::kMomentum,
            .sgd = sgd_constants(options_, step, decays)};
  }

 private:
  static constexpr std::array<std::string_view, 1> kSlotNames = {"momentum"};
};

// Where Adam applies weight decay: kIntoGradient is Adam, kDecoupled is AdamW.
enum class Decay : std::uint8_t { kIntoGradient, kDecoupled };

// Adam, AdamW. Source: Kingma and Ba 2015, algorithm 1, with epsilon outside the square root and
// added after the bias correction (PyTorch); Loshchilov and Hutter 2019, algorithm 2.
class Adam final : public KernelOptimizer {
 public:
  Adam(const OptimizerOptions& options, Decay decay) : KernelOptimizer(options), decay_(decay) {}

  std::span<const std::string_view> slot_names() const noexcept override { return kSlotNames; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    kernels_.adam(static_cast<std::int64_t>(values.size()), values.data(), gradients.data(),
                  slots[0].data(), slots[1].data(), fold(step, decays));
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    return {.rule = UpdateRule::kAdam, .adam = fold(step, decays)};
  }

 private:
  static constexpr std::array<std::string_view, 2> kSlotNames = {"exp_avg", "exp_avg_sq"};

  // Adam's constants need double precision: 1 - 0.999^1 has only four correct digits in f32.
  AdamConstants fold(const UpdateStep& step, bool decays) const {
    const double rate = step.learning_rate;
    const auto t = static_cast<double>(step.step);
    const double decay = decays ? options_.weight_decay : 0.0;
    const bool decoupled = decay_ == Decay::kDecoupled;
    return {
        .weight_decay = decoupled ? 0.0F : static_cast<float>(decay),
        .value_scale = decoupled ? static_cast<float>(1.0 - rate * decay) : 1.0F,
        .beta1 = static_cast<float>(options_.beta1),
        .beta2 = static_cast<float>(options_.beta2),
        .one_minus_beta1 = static_cast<float>(1.0 - options_.beta1),
        .one_minus_beta2 = static_cast<float>(1.0 - options_.beta2),
        .step_size = static_cast<float>(rate / (1.0 - std::pow(options_.beta1, t))),
        .denominator_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, t))),
        .epsilon = static_cast<float>(options_.epsilon),
    };
  }

  Decay decay_;
};

// Keeps a moving average of the values that another optimizer updates, in a slot of its own. The
// owner of the variables, checkpoints and servers treat the average as any other slot.
class AveragingOptimizer final : public Optimizer {
 public:
  explicit AveragingOptimizer(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {
    const std::span<const std::string_view> names = inner_->slot_names();
    slot_names_.assign(names.begin(), names.end());
    slot_names_.push_back(kAverageSlot);
  }

  const OptimizerOptions& options() const noexcept override { return inner_->options(); }
  std::span<const std::string_view> slot_names() const noexcept override { return slot_names_; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    inner_->update(step, values, gradients, slots.first(slots.size() - 1), decays);
    const FlushDenormals flush;
    const float rate = average_rate(step);
    float* const average = slots.back().data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      average[i] += rate * (values[i] - average[i]);
    }
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    UpdateConstants constants = inner_->constants(step, decays);
    constants.average_rate = average_rate(step);
    return constants;
  }

 private:
  // The slot is zero before the first update, so that a rate of 1 makes it the value.
  float average_rate(const UpdateStep& step) const {
    if (step.step == 1) return 1.0F;
    const auto n = static_cast<double>(step.step);
    return static_cast<float>(1.0 - std::min(options().average_decay, (1.0 + n) / (10.0 + n)));
  }

  std::unique_ptr<Optimizer> inner_;
  std::vector<std::string_view> slot_names_;
};

template <typename Kind, auto... Arguments>
std::unique_ptr<Optimizer> make_kind(const OptimizerOptions& options) {
  return std::make_unique<Kind>(options, Arguments...);
}

constexpr double kAdamRate = 0.001;  // Source: Kingma and Ba 2015, algorithm 1

constexpr std::array kOptimizers = {
    OptimizerRow{.name = "sgd", .help = "value -= rate * gradient", .make = make_kind<Sgd>},
    OptimizerRow{.name = "momentum",
                 .help = "gradient descent with momentum; --nesterov for Nesterov's",
                 .make = make_kind<Momentum>,
                 .has_momentum = true},
    OptimizerRow{.name = "adam",
                 .help = "Kingma and Ba 2015; weight decay is added to the gradient",
                 .make = make_kind<Adam, Decay::kIntoGradient>,
                 .default_learning_rate = kAdamRate,
                 .has_moments = true},
    OptimizerRow{.name = "adamw",
                 .help = "Adam with decoupled weight decay",
                 .make = make_kind<Adam, Decay::kDecoupled>,
                 .default_learning_rate = kAdamRate,
                 .has_moments = true},
};

void require_constant(bool holds, const std::string& flag, double found,
                      const std::string& expected) {
  if (holds) return;
  throw UsageError(fmt::format("{} {}: expected {}", flag, found, expected));
}

// Returns whether x is in [0, 1); false for NaN, which fails every comparison.
bool is_fraction(double x) { return x >= 0.0 && x < 1.0; }

void check_constants(const OptimizerOptions& options) {
  require_constant(is_fraction(options.momentum), "--momentum", options.momentum,
                   "a number in [0, 1)");
  require_constant(is_fraction(options.beta1), "--beta1", options.beta1, "a number in [0, 1)");
  require_constant(is_fraction(options.beta2), "--beta2", options.beta2, "a number in [0, 1)");
  require_constant(options.epsilon > 0.0 && std::isfinite(options.epsilon), "--epsilon",
                   options.epsilon, "a positive number");
  require_constant(options.weight_decay >= 0.0 && std::isfinite(options.weight_decay),
                   "--weight-decay", options.weight_decay, "zero or a positive number");
  require_constant(is_fraction(options.average_decay), "--ema", options.average_decay,
                   "a number between 0 and 1, such as 0.999");
  if (options.nesterov && options.momentum == 0.0) {
    throw UsageError(
        "--nesterov requires a momentum above 0, found --momentum 0; choose --optimizer sgd, or "
        "give a larger --momentum");
  }
}

// Returns the first parameter that ends behind arena element `index`. A binary search, because an
// arena has many parameters and a range covers few of them.
std::size_t first_parameter(const ArenaLayout& layout, std::int64_t index) {
  std::size_t low = 0;
  std::size_t high = layout.entries().size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (layout.offset(middle) + layout.size(middle) <= index) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

std::span<const OptimizerRow> optimizers() noexcept { return kOptimizers; }

const OptimizerRow& optimizer_row(const OptimizerOptions& options) {
  const auto* const row = std::ranges::find(kOptimizers, options.name, &OptimizerRow::name);
  if (row != kOptimizers.end()) return *row;
  throw UsageError(fmt::format("--optimizer {}: no such optimizer; choose one of {}", options.name,
                               fmt::join(names_of(optimizers()), ", ")));
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  const OptimizerRow& row = optimizer_row(options);
  check_constants(options);
  return with_average(row.make(options));
}

std::unique_ptr<Optimizer> with_average(std::unique_ptr<Optimizer> inner) {
  if (inner->options().average_decay == 0.0) return inner;
  return std::make_unique<AveragingOptimizer>(std::move(inner));
}

void check_update_lengths(const Optimizer& optimizer, std::span<float> values,
                          std::span<const float> gradients,
                          std::span<const std::span<float>> slots) {
  bool agree = gradients.size() == values.size() && slots.size() == optimizer.slot_names().size();
  for (const std::span<float> slot : slots) agree = agree && slot.size() == values.size();
  if (agree) return;
  std::string slot_sizes;
  for (const std::span<float> slot : slots) slot_sizes += fmt::format(" {}", slot.size());
  throw ShapeError(fmt::format(
      "optimizer {}: found {} values, {} gradients and {} slots of sizes [{} ]; expected {} slots, "
      "and arrays of equal size",
      optimizer.options().name, values.size(), gradients.size(), slots.size(), slot_sizes,
      optimizer.slot_names().size()));
}

void update_range(const Optimizer& optimizer, const UpdateStep& step, const ArenaLayout& layout,
                  Bucket range, std::span<float> values, std::span<const float> gradients,
                  std::span<const std::span<float>> slots) {
  check_update_lengths(optimizer, values, gradients, slots);
  check(slots.size() <= kMaxSlots, "an optimizer has at most kMaxSlots slots");
  if (static_cast<std::int64_t>(values.size()) != range.end - range.begin) {
    throw ShapeError(fmt::format("update of arena elements {} to {}: found {} values; expected {}",
                                 range.begin, range.end, values.size(), range.end - range.begin));
  }
  const std::size_t parameters = layout.entries().size();
  for (std::size_t i = first_parameter(layout, range.begin);
       i < parameters && layout.offset(i) < range.end; ++i) {
    const std::int64_t first = std::max(range.begin, layout.offset(i));
    const std::int64_t last = std::min(range.end, layout.offset(i) + layout.size(i));
    const auto at = static_cast<std::size_t>(first - range.begin);
    const auto count = static_cast<std::size_t>(last - first);
    std::array<std::span<float>, kMaxSlots> windows;
    for (std::size_t s = 0; s < slots.size(); ++s) windows[s] = slots[s].subspan(at, count);
    optimizer.update(step, values.subspan(at, count), gradients.subspan(at, count),
                     std::span(windows).first(slots.size()), layout.entries()[i].decays);
  }
}

const OptimizerKernels& optimizer_kernels(Isa isa) noexcept {
  switch (isa) {
    case Isa::kV4:
      return v4::kOptimizerKernels;
    case Isa::kV3:
      return v3::kOptimizerKernels;
    case Isa::kV2:
      break;
  }
  return v2::kOptimizerKernels;
}

}  // namespace syncopate
