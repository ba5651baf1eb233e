// Rules that follow from evaluations: when training ends, which checkpoint is the best one, and
// when the learning rate falls. The train loops judge each evaluation once. The state is a list of
// numbers that travels with the position of a run (ps::RunPosition::rules), so that a resumed run
// decides as one that was not stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/train/evaluate.h"

namespace syncopate {

// A number of an evaluation that rules compare.
enum class Metric : std::uint8_t { kMeanAccuracy, kMeanLoss, kMeanAbsoluteError, kMeanIou };

std::string_view name(Metric metric) noexcept;
// Returns the metric of a name such as "loss" or "val_loss"; nothing for another name.
std::optional<Metric> metric_named(std::string_view name) noexcept;

struct StopAt {
  Metric metric = Metric::kMeanAccuracy;
  // Reached by an accuracy or IoU of at least this value, or a loss or an error of at most it.
  double value = 0.0;
};

// Holds after `patience` evaluations in a row that were not better than the best by more than
// min_delta. Source: EarlyStopping and ReduceLROnPlateau of Keras.
struct Patience {
  Metric metric = Metric::kMeanLoss;
  int patience = 1;
  double min_delta = 0.0;
};

struct ReduceOnPlateau {
  Patience when;
  double factor = 0.1;  // of the learning rate, each time that the rule holds
};

struct EvaluationRuleOptions {
  std::optional<StopAt> stop_at;
  std::optional<Patience> early_stop;
  std::optional<ReduceOnPlateau> reduce_on_plateau;
  // By the first of these that there is: the metric of early_stop, of stop_at, the mean IoU, the
  // main metric of the loss.
  bool keeps_best = false;

  bool any() const noexcept { return stop_at || early_stop || reduce_on_plateau || keeps_best; }
};

// Throws UsageError naming the flag if a rule reads a metric that evaluations of the network lack.
void require_metrics_of(const Graph& graph, const EvaluationRuleOptions& options);

// Parsers of flag values: "accuracy=0.97", "metric=val_loss,patience=3" and
// "factor=0.1,patience=2". Throw UsageError.
StopAt parse_stop_at(std::string_view text);
Patience parse_early_stop(std::string_view text);
ReduceOnPlateau parse_reduce_on_plateau(std::string_view text);
// Return the text that reads back as these values.
std::string to_text(const StopAt& rule);
std::string to_text(const Patience& rule);
std::string to_text(const ReduceOnPlateau& rule);

// Applies the rules. One thread only.
class EvaluationRules {
 public:
  // state: from state() of an earlier process; empty for a new run. Throws FileError for the state
  // of another program.
  EvaluationRules(const EvaluationRuleOptions& options, const std::vector<double>& state);

  bool any() const noexcept { return options_.any(); }
  // Judges the evaluation after `step`; returns what it causes, as notes for the user. Does nothing
  // for a step that was judged before.
  std::vector<std::string> judge(std::int64_t step, const Evaluation& evaluation);

  std::int64_t judged_step() const noexcept;  // of the last evaluation; 0: none
  std::int64_t best_step() const noexcept;    // of the best evaluation, with keeps_best; 0: none
  // Returns the rule that ends training, such as "--stop-at loss=0.1"; empty: none.
  std::string ending_rule() const;
  bool ends_training() const { return !ending_rule().empty(); }
  // Returns the factor of the scheduled learning rate: 1 until a plateau is reached.
  double learning_rate_factor() const noexcept;
  // Returns the state: nothing without rules. The first number is the learning_rate_factor().
  std::vector<double> state() const;

 private:
  // The best value of a rule's metric, and the evaluations since.
  struct Tracker {
    double metric = -1.0;  // -1: no value yet; another one than the rule's: begins again
    double best = 0.0;
    double waited = 0.0;  // evaluations since the best one
    // Returns whether the value is the best so far.
    bool take(const Patience& rule, const Evaluation& evaluation);
  };
  // All numbers, so that state() is a copy.
  struct State {
    double learning_rate_factor = 1.0;
    double judged_step = 0.0;
    double loss = 0.0;  // of the last evaluation
    double metric = 0.0;
    double best_step = 0.0;
    Tracker early_stop;
    Tracker plateau;
    Tracker best;
    double mean_iou = 0.0;  // of the last evaluation
  };

  EvaluationRuleOptions options_;
  State state_;
};

}  // namespace syncopate
