// Measures the virtual time to a test accuracy by training under the virtual clock. The simulation
// of waiting alone cannot show how many samples a target needs.
#pragma once

#include "bench/compare/variant.h"
#include "bench/harness/fault_injection.h"
#include "bench/plan/plan.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Trains once and computes every gradient. An exception of the training becomes
// TargetTime::failure.
TargetTime time_to_target(const PlanOptions& options, const Variant& variant,
                          const FaultInjection& faults, const DataSplits& data);

}  // namespace syncopate::bench
