// Predicts how long a comparison in real processes takes, for a note before its first run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/compare/compare_options.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// What the time of a run depends on, besides its options.
struct RunConditions {
  double step_seconds = 0.0;  // of a step with --batch-size-per-replica samples on one thread
  int cpus = 1;
  std::int64_t train_samples = 0;
  std::int64_t watched_samples = 0;  // of the split that is evaluated
};

// Returns about how many seconds a run takes, with its start and its evaluations. Communication is
// ignored.
double expected_seconds(const CompareOptions& options, const Variant& variant,
                        const RunConditions& conditions);

// Measures a training step on one thread of this machine, and returns about how many seconds
// this many runs of each variant take. runs: by variant. Returns nullopt without runs, under the
// virtual clock, on devices other than CPUs, and if the step cannot be measured.
std::optional<double> expected_seconds(const CompareOptions& options, const std::vector<int>& runs,
                                       const DataSplits& data);

}  // namespace syncopate::bench
