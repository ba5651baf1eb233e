// Time to a test accuracy, from training under the virtual clock: what waiting alone does not say.
#pragma once

#include "bench/compare/variant.h"
#include "bench/harness/fault_injection.h"
#include "bench/plan/plan.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Trains once, with every gradient computed. What training throws is the failure.
TargetTime time_to_target(const PlanOptions& options, const Variant& variant,
                          const FaultInjection& faults, const DataSplits& data);

}  // namespace syncopate::bench
