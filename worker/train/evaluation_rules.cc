#include "worker/train/evaluation_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

struct MetricName {
  std::string_view name;
  Metric metric;
};
constexpr std::array kMetrics = {MetricName{"accuracy", Metric::kMeanAccuracy},
                                 MetricName{"loss", Metric::kMeanLoss},
                                 MetricName{"mae", Metric::kMeanAbsoluteError},
                                 MetricName{"mean_iou", Metric::kMeanIou},
                                 MetricName{"val_accuracy", Metric::kMeanAccuracy},
                                 MetricName{"val_loss", Metric::kMeanLoss},
                                 MetricName{"val_mae", Metric::kMeanAbsoluteError},
                                 MetricName{"val_mean_iou", Metric::kMeanIou}};
constexpr double kMostPatience = 1e6;

Metric main_metric(LossKind loss) {
  const auto metric = metric_named(metrics(loss)[kMainMetric].name);
  check(metric.has_value(), "rules know the main metric of every loss");
  return *metric;
}

// The one place that reads the result of an evaluation.
double value_of(const Evaluation& evaluation, Metric metric) {
  if (metric == Metric::kMeanIou) return evaluation.metric.mean_iou.value_or(std::nan(""));
  return metric == Metric::kMeanLoss ? evaluation.loss : evaluation.metric.value;
}

// Whether more of the metric, a share, is better; of the others less is better.
bool more_is_better(Metric metric) {
  return metric == Metric::kMeanAccuracy || metric == Metric::kMeanIou;
}

bool is_reached(const StopAt& rule, double value) {
  return more_is_better(rule.metric) ? value >= rule.value : value <= rule.value;
}

Metric metric_of_the_best(const EvaluationRuleOptions& options, const Evaluation& evaluation) {
  if (options.early_stop) return options.early_stop->metric;
  if (options.stop_at) return options.stop_at->metric;
  return evaluation.metric.mean_iou ? Metric::kMeanIou : main_metric(evaluation.metric.loss);
}

// Parses a whole text as a finite number.
std::optional<double> number_in(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Takes metric, patience and min-delta out of `fields`. Returns false for a wrong value.
bool take_patience(Fields& fields, Patience& rule) {
  if (const auto field = fields.extract("metric")) {
    const auto metric = metric_named(field.mapped());
    if (!metric) return false;
    rule.metric = *metric;
  }
  if (const auto field = fields.extract("patience")) {
    const auto value = number_in(field.mapped());
    if (!value || *value < 1.0 || *value > kMostPatience || *value != std::floor(*value)) {
      return false;
    }
    rule.patience = static_cast<int>(*value);
  }
  if (const auto field = fields.extract("min-delta")) {
    const auto value = number_in(field.mapped());
    if (!value || *value < 0.0) return false;
    rule.min_delta = *value;
  }
  return true;
}

}  // namespace

std::string_view name(Metric metric) noexcept {
  return std::ranges::find(kMetrics, metric, &MetricName::metric)->name;
}

std::optional<Metric> metric_named(std::string_view name) noexcept {
  for (const MetricName& row : kMetrics) {
    if (row.name == name) return row.metric;
  }
  return std::nullopt;
}

void require_metrics_of(const Graph& graph, const EvaluationRuleOptions& options) {
  const Metric known = main_metric(graph.loss().kind);
  const auto require = [&](std::string_view flag, const auto& rule, Metric metric) {
    if (metric == Metric::kMeanLoss || metric == known) return;
    if (metric == Metric::kMeanIou && graph.gives_maps()) return;
    throw UsageError(fmt::format("{} {}: evaluations of this network have the metrics loss{} {}{}",
                                 flag, to_text(rule), graph.gives_maps() ? "," : " and",
                                 name(known), graph.gives_maps() ? " and mean_iou" : ""));
  };
  if (const auto& rule = options.stop_at) require("--stop-at", *rule, rule->metric);
  if (const auto& rule = options.early_stop) require("--early-stop", *rule, rule->metric);
  if (const auto& rule = options.reduce_on_plateau) {
    require("--reduce-on-plateau", *rule, rule->when.metric);
  }
}

StopAt parse_stop_at(std::string_view text) {
  const auto fields = parse_fields(text);
  std::string meant;
  if (fields && fields->size() == 1) {
    const auto metric = metric_named(fields->begin()->first);
    const auto value = number_in(fields->begin()->second);
    if (metric && value && *value >= 0.0 && (!more_is_better(*metric) || *value <= 1.0)) {
      return {*metric, *value};
    }
    constexpr double kPercent = 100.0;
    if (metric && value && *value >= 2.0 && *value <= kPercent) {
      meant = fmt::format("; did you mean {}={:g}?", fields->begin()->first, *value / kPercent);
    }
  }
  throw UsageError(fmt::format(
      "--stop-at {}: expected accuracy=A or mean_iou=A, a fraction from 0 to 1, loss=L or mae=E, "
      "such as accuracy=0.97{}",
      text, meant));
}

Patience parse_early_stop(std::string_view text) {
  Patience rule;
  auto fields = parse_fields(text);
  if (fields && !fields->empty() && take_patience(*fields, rule) && fields->empty()) return rule;
  throw UsageError(
      "--early-stop " + std::string(text) +
      ": expected metric=accuracy, loss, mae or mean_iou, patience=N, a number of evaluations, and "
      "min-delta=D, such as metric=val_loss,patience=3");
}

ReduceOnPlateau parse_reduce_on_plateau(std::string_view text) {
  ReduceOnPlateau rule;
  auto fields = parse_fields(text);
  if (fields && !fields->empty() && take_patience(*fields, rule.when)) {
    const auto field = fields->extract("factor");
    const auto factor = field ? number_in(field.mapped()) : rule.factor;
    if (fields->empty() && factor && *factor > 0.0 && *factor < 1.0) {
      rule.factor = *factor;
      return rule;
    }
  }
  throw UsageError("--reduce-on-plateau " + std::string(text) +
                   ": expected factor=F, between 0 and 1, patience=N, a number of evaluations, "
                   "metric=accuracy, loss, mae or mean_iou, and min-delta=D, such as "
                   "factor=0.1,patience=2");
}

std::string to_text(const StopAt& rule) {
  return fmt::format("{}={}", name(rule.metric), shortest_text(rule.value));
}

std::string to_text(const Patience& rule) {
  std::string text = fmt::format("metric={},patience={}", name(rule.metric), rule.patience);
  if (rule.min_delta > 0.0) text += ",min-delta=" + shortest_text(rule.min_delta);
  return text;
}

std::string to_text(const ReduceOnPlateau& rule) {
  return fmt::format("factor={},{}", shortest_text(rule.factor), to_text(rule.when));
}

bool EvaluationRules::Tracker::take(const Patience& rule, const Evaluation& evaluation) {
  const auto number = static_cast<double>(rule.metric);
  const bool is_share = more_is_better(rule.metric);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (metric != number) *this = {number, is_share ? -kInfinity : kInfinity, 0.0};
  const double value = value_of(evaluation, rule.metric);
  const bool is_better = (is_share ? value - best : best - value) > rule.min_delta;
  waited = is_better ? 0.0 : waited + 1.0;
  if (is_better) best = value;
  return is_better;
}

EvaluationRules::EvaluationRules(const EvaluationRuleOptions& options,
                                 const std::vector<double>& state)
    : options_(options) {
  std::array<double, sizeof(State) / sizeof(double)> numbers{};
  if (state.empty()) return;  // a new run, or one that had no rules
  if (state.size() != numbers.size()) {
    throw FileError(fmt::format(
        "the checkpoint has {} numbers of the rules for evaluations, this program reads "
        "{}; use the program that wrote it",
        state.size(), numbers.size()));
  }
  std::copy(state.begin(), state.end(), numbers.begin());
  state_ = std::bit_cast<State>(numbers);
}

std::vector<std::string> EvaluationRules::judge(std::int64_t step, const Evaluation& evaluation) {
  if (!any() || step == judged_step()) return {};
  const bool ended = ends_training();
  state_.judged_step = static_cast<double>(step);
  if (!options_.keeps_best) {  // the checkpoint that was the best one may be removed
    state_.best = {};
    state_.best_step = 0.0;
  } else if (state_.best.take({metric_of_the_best(options_, evaluation)}, evaluation)) {
    state_.best_step = static_cast<double>(step);
  }
  // Asynchronous workers evaluate once more after the end is decided. That does not revoke it.
  if (ended) return {};
  state_.loss = evaluation.loss;
  state_.metric = evaluation.metric.value;
  state_.mean_iou = evaluation.metric.mean_iou.value_or(0.0);
  std::vector<std::string> notes;
  if (options_.early_stop) state_.early_stop.take(*options_.early_stop, evaluation);
  if (const auto& rule = options_.reduce_on_plateau) {
    state_.plateau.take(rule->when, evaluation);
    if (state_.plateau.waited >= rule->when.patience) {
      state_.plateau.waited = 0.0;
      state_.learning_rate_factor *= rule->factor;
      notes.push_back(
          fmt::format("no better {} in {} evaluation{}: the learning rate is {:.4g} of the "
                      "scheduled one from here on",
                      name(rule->when.metric), rule->when.patience,
                      rule->when.patience == 1 ? "" : "s", state_.learning_rate_factor));
    }
  }
  if (ends_training()) {
    notes.push_back(fmt::format("training ends at step {}: {} holds", step, ending_rule()));
  }
  return notes;
}

std::int64_t EvaluationRules::judged_step() const noexcept {
  return static_cast<std::int64_t>(state_.judged_step);
}

std::int64_t EvaluationRules::best_step() const noexcept {
  return options_.keeps_best ? static_cast<std::int64_t>(state_.best_step) : 0;
}

// A function of state and options, so that a resumed run with other options decides by those.
std::string EvaluationRules::ending_rule() const {
  if (state_.judged_step == 0.0) return "";
  const Evaluation last{.loss = state_.loss,
                        .metric = {.value = state_.metric, .mean_iou = state_.mean_iou}};
  if (const auto& rule = options_.stop_at) {
    if (is_reached(*rule, value_of(last, rule->metric))) return "--stop-at " + to_text(*rule);
  }
  if (const auto& rule = options_.early_stop) {
    const Tracker& tracker = state_.early_stop;
    if (tracker.metric == static_cast<double>(rule->metric) && tracker.waited >= rule->patience) {
      return "--early-stop " + to_text(*rule);
    }
  }
  return "";
}

double EvaluationRules::learning_rate_factor() const noexcept {
  return options_.reduce_on_plateau ? state_.learning_rate_factor : 1.0;
}

std::vector<double> EvaluationRules::state() const {
  if (!any()) return {};
  const auto numbers = std::bit_cast<std::array<double, sizeof(State) / sizeof(double)>>(state_);
  return {numbers.begin(), numbers.end()};
}

}  // namespace syncopate
