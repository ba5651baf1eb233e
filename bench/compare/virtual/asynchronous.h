// A virtual job whose workers keep no step: async, ssp, and sync with backup workers. Each leases a
// batch, computes the gradient of the values it was handed, pushes, and gets its next values as the
// shard's rule allows. A real job's coordinator, in virtual time: ledger, shard, rule and running
// statistics are its own. Called by train.cc.
//
// A gradient is computed when its service time has passed: it depends on the values read alone, so
// no worker needs a device of its own.
#pragma once

#include <functional>

#include "bench/compare/virtual/device.h"
#include "bench/compare/virtual/outcome.h"
#include "bench/compare/virtual/plan.h"

namespace syncopate::bench {

// Throws what train_virtually throws.
VirtualOutcome train_without_step(const VirtualRun& run, const VirtualPlan& plan,
                                  VirtualDevice& device, MetricsWriter& metrics,
                                  const std::function<void(double)>& progress);

}  // namespace syncopate::bench
