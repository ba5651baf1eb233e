// One run under the virtual clock, from the same options as a real one.
#pragma once

#include <functional>

#include "bench/compare/variant.h"
#include "worker/input/dataset.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Writes its lines to `metrics`, and returns the last. `progress` is called with the part that is
// done, from 0 to 1; what it throws ends the run. Throws UsageError for options that have no
// meaning together, and what training throws.
Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      const std::function<void(double)>& progress);

}  // namespace syncopate::bench
