// Summarises the runs of each variant over the seeds, as one row per variant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// The values of a quantity over the runs of a variant. Never empty.
struct Sample {
  std::vector<double> values;
  double mean = 0.0;
  std::optional<double> deviation;  // standard deviation; empty for a single value
};

// The evaluation at which a run reached the target: the first evaluation at or above the target, if
// one of the next two evaluations is at or above the target, too. Times are not interpolated.
struct TargetPoint {
  double seconds = 0.0;
  std::int64_t samples = 0;
  double gap_seconds = 0.0;   // seconds since the previous evaluation
  double wall_seconds = 0.0;  // `seconds` plus the time of evaluations that paused training
};

// Returns the evaluation at which a run reached the target; nullopt if the run did not reach it. If
// only the last evaluation of a run is at or above the target, the run has reached the target
// there.
std::optional<TargetPoint> time_to_target(const RunResult& run, double target_accuracy);

// Returns whether a run reached the target in an evaluation and was below it in a later one.
bool fell_below_again(const RunResult& run, double target_accuracy);

// Returns the comparison with accuracies below the target where a later evaluation is below it, so
// that a run reaches the target where it stays.
Comparison with_lasting_target(const Comparison& comparison);

// Returns the final accuracy of a run on the test split: the mean of the evaluations in the last
// tenth of its samples. With a validation split, returns the accuracy of the evaluation on the test
// split after training.
double final_accuracy(const RunResult& run, std::string_view watched_split);

// Returns the mean accuracy of the evaluations in the last tenth of a run's samples. The run must
// have an evaluation.
double last_accuracy(const RunResult& run);

// What a variant occupies while it trains.
struct Resources {
  int processes = 1;  // workers and servers; 1 if all replicas are in one process
  int cpus = 1;       // one for each thread of each worker or replica, and one for each server
};
Resources resources_of(const Comparison& comparison, const ComparedVariant& variant);

enum class Kind : std::uint8_t { kOneWorker, kSynchronous, kAsynchronous };

// A row of the comparison's table. A Sample has the values of the successful runs; it is nullopt if
// no run succeeded.
struct VariantSummary {
  std::string name;  // the label; with the number of workers if rows share the label
  int workers = 1;
  Kind kind = Kind::kOneWorker;
  Resources resources;
  int done = 0;
  int failed = 0;
  int pending = 0;
  int reached = 0;                    // successful runs that reached the target
  int disturbed = 0;                  // successful runs that other programs disturbed
  bool has_comparable_times = true;   // false: the runs are real and were made on several machines
  double most_disturbance = 0.0;      // the largest share of the CPU time that other programs took
  std::vector<std::string> failures;  // one per failed run, such as "seed 2: REASON"
  std::vector<std::string> notes;  // about successful runs; "seed 2: NOTE" if not about all of them
  std::optional<Sample> accuracy;  // final accuracy, a fraction
  std::optional<Sample> seconds;   // duration of the whole run
  std::optional<Sample> samples_per_second;
  std::optional<Sample> staleness;  // mean staleness of each run; nullopt for synchronous variants
  // Time and samples to the target are nullopt unless every run that ended reached the target,
  // because a mean over only some of the runs would be too good.
  std::optional<Sample> seconds_to_target;
  std::optional<Sample> samples_to_target;
  // The times of the runs that reached the target, in the order of seeds.
  std::vector<double> reached_seconds;
  std::vector<double> reached_gaps;  // TargetPoint::gap_seconds
  // Time of the last evaluation of each run that missed the target.
  std::vector<double> missed_seconds;
  // The index of the earlier row that has the same weights and times as this row in all runs.
  std::optional<std::size_t> same_as;
  // Whether the accuracy still rose at the end of the runs: in the last fifth, it is higher than in
  // the fifth before by more than 0.5 percentage points and more than two standard errors over the
  // seeds.
  bool is_still_learning = false;
  // If the learning rate is too large for the staleness of the gradients: a rate that is not. No
  // claim is made about such a row, because another rate would give another result. The rate is too
  // large if rate * (1 + staleness) / (1 - momentum) exceeds what one worker tolerates
  // (ComparedVariant::stable_rate). Source: the gradients of (1 + staleness) updates are computed
  // at almost the same values, as if their rates were added up (Mitliagkas et al. 2016).
  std::optional<double> better_rate;
  std::vector<std::string> weights;  // hashes of the final weights of all successful runs
  std::optional<Sample> updates;
  std::optional<Sample> samples;  // trained samples of each run
  // If gradients are dropped (ComparedVariant::drops): their fraction of all gradients. Nullopt if
  // unknown.
  std::optional<double> dropped_gradients;

  int ended() const noexcept { return done + failed; }
  // Returns the samples per update; nullopt if there are no updates.
  std::optional<double> batch() const noexcept {
    return updates && updates->mean > 0.0 ? std::optional(samples->mean / updates->mean)
                                          : std::nullopt;
  }
  // Returns whether claims and recommendations leave the row out.
  bool is_left_out() const noexcept { return better_rate.has_value(); }
  bool is_complete() const noexcept { return done > 0 && failed == 0 && pending == 0; }
  // Returns the number of runs with a final accuracy that is not finite.
  int not_numbers() const noexcept;
  // Returns whether the mean final accuracy is not significantly better than chance.
  bool is_at_chance(const std::optional<Chance>& chance) const noexcept;
};

using Rows = std::vector<VariantSummary>;

// Returns one row per variant, in the order of the comparison.
Rows summarise(const Comparison& comparison);

// Returns the rows about which claims can be made.
std::vector<const VariantSummary*> judged_rows(const Rows& rows);

// Returns the name of the row, in quotes if it has blanks or commas outside braces.
std::string named(const VariantSummary& row);

// Returns the largest share of the CPU time that other programs took during a run.
double most_disturbance(const Rows& rows);

// Returns whether all runs of two rows ended with equal weights, bit for bit.
bool have_same_weights(const VariantSummary& a, const VariantSummary& b);

}  // namespace syncopate::bench
