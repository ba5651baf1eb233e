// Finds the largest learning rate that one worker tolerates, before a comparison with untuned
// rates. The report makes no claim about an asynchronous variant that exceeds this rate
// (report/summary.h, VariantSummary::better_rate).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/comparison_parts.h"
#include "worker/input/dataset.h"
#include "worker/train/progress.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

// The number of updates of a short run, and of its beginning and end over which losses are
// averaged.
inline constexpr std::size_t kShortRunUpdates = 100;
inline constexpr std::size_t kAveragedUpdates = 20;

// The training losses of a short run.
struct ShortRun {
  double beginning = 0.0;  // mean loss of the first kAveragedUpdates
  double end = 0.0;        // mean loss of the last kAveragedUpdates

  // Returns whether the loss fell, to at least a tenth less than the loss of guessing. A network
  // that diverges may return to the loss of guessing, which is far below the losses of its
  // divergence.
  bool is_stable(double loss_of_chance) const noexcept;
};

// Returns the averages of the losses of a run; NaN if the run has fewer than kShortRunUpdates
// losses, because training diverged.
ShortRun short_run_of(const std::vector<double>& losses);

// Returns the largest of the rates start, start / 2, start / 4, ... at which training is stable;
// nullopt if none of the first ten is.
std::optional<double> largest_stable_rate(double start,
                                          const std::function<bool(double rate)>& is_stable);

// Sets RunSpec::stable_rate of the asynchronous runs that have several workers and an untuned rate.
// A rate that the file of an earlier run has is not searched again. Each short run is noted on
// `display`. Returns false if a signal stopped the search.
bool find_stable_rates(std::vector<ComparisonPart>& parts, const DataSplits& data,
                       StopSignal& signals, ProgressDisplay& display);

}  // namespace syncopate::bench
