// Rules that are applied to each evaluation and decide when training ends, which checkpoint is the
// best, and when the learning rate is reduced. The training loops call judge() once per evaluation.
// The state is a list of numbers that is stored with the position of a run
// (ps::RunPosition::rules), so that a resumed run decides like a run that was not stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/train/evaluate.h"

namespace syncopate {

// The metric of an evaluation that a rule compares.
enum class Metric : std::uint8_t { kMeanAccuracy, kMeanLoss, kMeanAbsoluteError, kMeanIou };

std::string_view name(Metric metric) noexcept;
// Returns the metric with this name, such as "loss" or "val_loss"; nullopt for an unknown name.
std::optional<Metric> metric_named(std::string_view name) noexcept;

struct StopAt {
  Metric metric = Metric::kMeanAccuracy;
  // Training ends after an evaluation in which the metric reaches `value`: an accuracy or IoU is at
  // least `value`, a loss or error is at most `value`.
  double value = 0.0;
};

// A rule that holds when the last `patience` evaluations did not improve the best value of the
// metric by more than min_delta. Source: EarlyStopping and ReduceLROnPlateau of Keras.
struct Patience {
  Metric metric = Metric::kMeanLoss;
  int patience = 1;
  double min_delta = 0.0;
};

struct ReduceOnPlateau {
  Patience when;
  double factor = 0.1;  // multiplies the learning rate each time that `when` holds
};

struct EvaluationRuleOptions {
  std::optional<StopAt> stop_at;
  std::optional<Patience> early_stop;
  std::optional<ReduceOnPlateau> reduce_on_plateau;
  // True: the checkpoint of the best evaluation is not removed. Evaluations are compared by the
  // metric of early_stop or, without this rule, by the metric of stop_at; without both rules by the
  // mean IoU if the network has label maps, else by the main metric of the loss.
  bool keeps_best = false;

  bool any() const noexcept { return stop_at || early_stop || reduce_on_plateau || keeps_best; }
};

// Throws UsageError naming the flag if a rule compares a metric that evaluations of the network do
// not have.
void require_metrics_of(const Graph& graph, const EvaluationRuleOptions& options);

// These functions parse flag values such as "accuracy=0.97", "metric=val_loss,patience=3" and
// "factor=0.1,patience=2". They throw UsageError.
StopAt parse_stop_at(std::string_view text);
Patience parse_early_stop(std::string_view text);
ReduceOnPlateau parse_reduce_on_plateau(std::string_view text);
// These functions return the text from which the parsers above make an equal rule.
std::string to_text(const StopAt& rule);
std::string to_text(const Patience& rule);
std::string to_text(const ReduceOnPlateau& rule);

// Applies the evaluation rules of a run and holds their state. One thread only.
class EvaluationRules {
 public:
  // state: from state() of an earlier process; empty for a new run. Throws FileError if another
  // version of the program wrote the state.
  EvaluationRules(const EvaluationRuleOptions& options, const std::vector<double>& state);

  bool any() const noexcept { return options_.any(); }
  // Applies the rules to the evaluation after `step`. Returns notes for the user on what follows
  // from the evaluation, such as the end of training. Does nothing if the previous call had the
  // same `step`.
  std::vector<std::string> judge(std::int64_t step, const Evaluation& evaluation);

  std::int64_t judged_step() const noexcept;  // step of the last evaluation; 0: none
  std::int64_t best_step() const noexcept;  // step of the best evaluation, with keeps_best; 0: none
  // Returns the rule that ends training, such as "--stop-at loss=0.1"; empty if training goes on.
  std::string ending_rule() const;
  bool ends_training() const { return !ending_rule().empty(); }
  // Returns the factor that multiplies the scheduled learning rate: 1 until a plateau is reached.
  double learning_rate_factor() const noexcept;
  // Returns the state; empty if there are no rules. The first number is learning_rate_factor().
  std::vector<double> state() const;

 private:
  // Stores the best value of a rule's metric so far, and the number of evaluations since the best
  // value.
  struct Tracker {
    // The Metric of the value `best`, as a number; -1: there is no value yet. take() discards
    // `best` if its rule has another metric.
    double metric = -1.0;
    double best = 0.0;
    double waited = 0.0;  // number of evaluations since the best evaluation
    // Adds an evaluation. Returns whether it improves `best` by more than the rule's min_delta.
    bool take(const Patience& rule, const Evaluation& evaluation);
  };
  // All members are of type double, so that state() can copy the object as a list of numbers.
  struct State {
    double learning_rate_factor = 1.0;
    double judged_step = 0.0;
    double loss = 0.0;  // loss of the last evaluation
    double metric = 0.0;
    double best_step = 0.0;
    Tracker early_stop;
    Tracker plateau;
    Tracker best;
    double mean_iou = 0.0;  // mean IoU of the last evaluation
  };

  EvaluationRuleOptions options_;
  State state_;
};

}  // namespace syncopate
