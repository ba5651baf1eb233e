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

// Trains a run, writes its lines to `metrics` and returns the last line, the summary. Each element
// of `others` describes another cluster: the lines that the same run writes on this cluster are
// written to the element's metrics. progress: called with the fraction of the run that is done; if
// it throws, the run ends with this exception. Throws UsageError for contradictory options, and
// what training throws.
Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      std::span<const OtherTimes> others,
                      const std::function<void(double)>& progress);

// Returns notes about the weights that the runs load by --init-from, in the words that train
// prints. There is one note for each combination of file and --head. Throws what load_weights()
// throws, so that a missing or unsuitable file is found before the first run.
std::vector<std::string> describe_initial_weights(const std::vector<TrainOptions>& runs,
                                                  const DataSplits& data);

// Returns the seconds per step in which one worker communicates, by the formulas of
// virtual_clock/time_model.h. In a synchronous variant, all workers send at the same time; in an
// asynchronous variant, the worker is assumed to use the servers alone. Returns nullopt without
// link emulation, for compressed gradients, because their size depends on the data, and for flags
// that train refuses.
std::optional<double> predict_communication(const RunSpec& run, const DataSplits& data);

}  // namespace syncopate::bench
