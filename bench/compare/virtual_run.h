// One run under the virtual clock, from the same flags as a real one.
#pragma once

#include <functional>

#include "bench/compare/variant.h"
#include "deploy/cli/options.h"
#include "worker/input/dataset.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// As train would read the run's flags. Throws UsageError for those that it would refuse.
TrainOptions train_options_of(const RunSpec& run);

// Writes its lines to `metrics`, and returns the last. `progress` hears the part that is done, from
// 0 to 1; what it throws ends the run. Throws UsageError for flags that train would refuse, and
// what training throws.
Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      const std::function<void(double)>& progress);

}  // namespace syncopate::bench
