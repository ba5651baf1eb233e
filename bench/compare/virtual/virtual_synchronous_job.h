// A synchronous virtual job. Each step trains the same shares of a global batch, sums the gradients
// in the same order and makes the same update as the real strategy, so the weights are equal bit
// for bit. step_times.h computes when a step happens. Called by virtual_training.cc.
#pragma once

#include <functional>

#include "bench/compare/virtual/job_lines.h"
#include "bench/compare/virtual/virtual_device.h"
#include "bench/compare/virtual/virtual_plan.h"

namespace syncopate::bench {

// Throws what train_virtually throws.
VirtualOutcome train_synchronously(const VirtualRun& run, const VirtualPlan& plan,
                                   VirtualDevice& device, MetricsWriter& metrics,
                                   const std::function<void(double)>& progress);

}  // namespace syncopate::bench
