// Trains one run under the virtual clock, with the options of a real run, and predicts the
// communication time of a real run.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/compare/variant.h"
#include "bench/virtual_clock/virtual_training.h"
#include "worker/input/dataset.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Trains a run: writes its lines to `metrics` and returns the last one, and writes the lines of the
// same run in other clusters to their metrics. progress is called with the fraction that is done;
// an exception from it ends the run. Throws UsageError for contradictory options, and what training
// throws.
Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      std::span<const OtherTimes> others,
                      const std::function<void(double)>& progress);

// Returns what the runs load of --init-from, in the words of train, one note for each file and
// network. Throws what load_weights() throws: a file that is missing or that does not fit would
// fail in every run.
std::vector<std::string> describe_initial_weights(const std::vector<TrainOptions>& runs,
                                                  const DataSplits& data);

// Returns the seconds that one worker communicates per step, by the formulas of
// virtual/time_model.h: for a synchronous variant all workers send at once, otherwise one worker
// has the servers to itself. Empty without link emulation, with compressed gradients (their size
// depends on the data), and for flags that train refuses.
std::optional<double> predict_communication(const RunSpec& run, const DataSplits& data);

}  // namespace syncopate::bench
