// Trains one run under the virtual clock, with the options of a real run.
#pragma once

#include <functional>

#include "bench/compare/variant.h"
#include "worker/input/dataset.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Writes the lines of the run to `metrics` and returns the last one. progress is called with the
// fraction that is done; an exception from it ends the run. Throws UsageError for contradictory
// options, and what training throws.
Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      const std::function<void(double)>& progress);

}  // namespace syncopate::bench
