#include "ps/shard/stale_gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/base/denormals.h"
#include "models/base/errors.h"
#include "models/base/parse_number.h"

namespace syncopate::ps {
namespace {

// Adds up `size` gradients, and lets another optimizer make one update with their mean.
class CollectingOptimizer final : public Optimizer {
 public:
  CollectingOptimizer(std::unique_ptr<Optimizer> inner, std::int64_t size)
      : inner_(std::move(inner)), size_(size) {
    const std::span<const std::string_view> names = inner_->slot_names();
    slot_names_.assign(names.begin(), names.end());
    slot_names_.push_back(kCollectedSlot);
  }

  const OptimizerOptions& options() const noexcept override { return inner_->options(); }
  std::span<const std::string_view> slot_names() const noexcept override { return slot_names_; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    const std::span<float> collected = slots.back();
    const std::int64_t place = (step.step - 1) % size_;
    if (place == 0) {
      std::ranges::copy(gradients, collected.begin());
    } else {
      for (std::size_t i = 0; i < collected.size(); ++i) collected[i] += gradients[i];
    }
    if (place + 1 < size_) return;
    const auto divisor = static_cast<float>(size_);
    for (float& sum : collected) sum /= divisor;
    UpdateStep whole = step;
    whole.step = (step.step - 1) / size_ + 1;
    inner_->update(whole, values, collected, slots.first(slots.size() - 1), decays);
    std::ranges::fill(collected, 0.0F);
  }
  UpdateConstants constants(const UpdateStep& /*step*/, bool /*decays*/) const override {
    throw InternalError("a shard collects gradients on the host");
  }

 private:
  const std::unique_ptr<Optimizer> inner_;
  const std::int64_t size_;
  std::vector<std::string_view> slot_names_;
};

// Heavy-ball momentum as if every step summed the gradients of `workers` workers. The order of
// arrival does not matter. Gradient i of the job, from 0, belongs to step
// ceil(i / workers), since the first values are read by all workers. When a new step n begins, the
// momentum u becomes beta u and moves the values. A gradient g of step n - b, which arrives now,
// would have moved the values by (1 + beta + ... + beta^b) g until now, and u contains beta^b g.
class OrderedMomentum final : public Optimizer {
 public:
  OrderedMomentum(const OptimizerOptions& options, int workers)
      : options_(options), workers_(workers) {}

  const OptimizerOptions& options() const noexcept override { return options_; }
  std::span<const std::string_view> slot_names() const noexcept override { return kSlotNames; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    const std::int64_t now = group(step.step);
    const bool begins = step.step > 1 && now > group(step.step - 1);
    // A gradient of unknown values counts as one of the current values.
    const bool is_known = step.read > 0 && step.read <= step.step;
    const auto late = static_cast<double>(is_known ? now - group(step.read) : 0);
    const double beta = options_.momentum;
    const auto kept = static_cast<float>(begins ? beta : 1.0);
    const auto gain = static_cast<float>(std::pow(beta, late));
    const auto moved = static_cast<float>((1.0 - std::pow(beta, late + 1.0)) / (1.0 - beta));
    const auto decay = static_cast<float>(decays ? options_.weight_decay : 0.0);
    const float rate = step.learning_rate;
    float* const momentum = slots.front().data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float gradient = gradients[i] + decay * values[i];
      const float before = kept * momentum[i];
      values[i] -= rate * ((begins ? before : 0.0F) + moved * gradient);
      momentum[i] = before + gain * gradient;
    }
  }
  UpdateConstants constants(const UpdateStep& /*step*/, bool /*decays*/) const override {
    throw InternalError("a shard orders momentum on the host");
  }

 private:
  static constexpr std::array<std::string_view, 1> kSlotNames = {"momentum"};

  // Returns the step of the gradient of values with this version.
  std::int64_t group(std::int64_t version) const noexcept {
    return (version - 1 + workers_ - 1) / workers_;
  }

  const OptimizerOptions options_;
  const std::int64_t workers_;
};

std::vector<std::string> rule_texts() {
  std::vector<std::string> texts;
  for (const StalenessRule rule : kAllValues<StalenessRule>) {
    texts.push_back(fmt::format("{}{}", name(rule), has_number(rule) ? ":N" : ""));
  }
  return texts;
}

}  // namespace

bool is_too_stale(const ConsistencyOptions& options, std::uint64_t read,
                  std::uint64_t version) noexcept {
  const bool is_known = read > 0 && read <= version;
  const auto number = static_cast<std::uint64_t>(options.rule_number);
  switch (options.staleness_rule) {
    case StalenessRule::kRingmaster:
      return !is_known || version - read >= number;
    case StalenessRule::kRennala:
      return !is_known || (read - 1) / number != (version - 1) / number;
    default:
      return false;
  }
}

bool drops_gradients(const ConsistencyOptions& options) noexcept {
  return options.backup_workers > 0 || has_number(options.staleness_rule);
}

std::unique_ptr<Optimizer> make_shard_optimizer(const OptimizerOptions& optimizer,
                                                const ConsistencyOptions& consistency,
                                                int workers) {
  std::unique_ptr<Optimizer> plain = make_optimizer(optimizer);
  if (consistency.staleness_rule == StalenessRule::kOrderedMomentum) {
    if (!optimizer_row(optimizer).has_momentum || optimizer.nesterov) {
      throw UsageError(
          "--staleness-rule ordered-momentum requires --optimizer momentum without --nesterov");
    }
    return with_average(std::make_unique<OrderedMomentum>(optimizer, std::max(workers, 1)));
  }
  const std::int64_t collected = gradients_per_update(consistency);
  if (collected == 1) return plain;
  return std::make_unique<CollectingOptimizer>(std::move(plain), collected);
}

void DropCounter::add(std::uint64_t sequence, bool is_dropped, std::size_t buckets) {
  if (sequence != sequence_) pushes_ = dropped_ = 0;
  sequence_ = sequence;
  dropped_ += is_dropped ? 1 : 0;
  if (++pushes_ != buckets || dropped_ == 0) return;
  ++(dropped_ == buckets ? totals_.whole : totals_.in_part);
}

void set_staleness_rule(ConsistencyOptions& options, std::string_view text, std::string_view flag) {
  const std::size_t colon = text.find(':');
  const auto rule = value_named<StalenessRule>(text.substr(0, colon));
  const auto number = colon == std::string_view::npos
                          ? std::nullopt
                          : parse_number<std::int64_t>(text.substr(colon + 1));
  const bool wants_number = rule && has_number(*rule);
  if (!rule || wants_number != (colon != std::string_view::npos)) {
    throw UsageError(
        fmt::format("{} {}: expected one of {}", flag, text, fmt::join(rule_texts(), ", ")));
  }
  if (wants_number && (!number || *number < 1 || *number > kMostRuleNumber)) {
    throw UsageError(fmt::format("{} {}: expected a whole number from 1 to {} after the colon",
                                 flag, text, kMostRuleNumber));
  }
  options.staleness_rule = *rule;
  options.rule_number = number.value_or(1);
}

std::string staleness_rule_text(const ConsistencyOptions& options) {
  const std::string rule(name(options.staleness_rule));
  return has_number(options.staleness_rule) ? fmt::format("{}:{}", rule, options.rule_number)
                                            : rule;
}

}  // namespace syncopate::ps
