// A virtual job whose workers keep step: each step trains the same shares of a global batch, sums
// the gradients in the same order and makes the same update as the real strategy, so the weights
// are the same bit for bit; when it happens is step_times.h. Called by train.cc.
#pragma once

#include <functional>

#include "bench/compare/virtual/device.h"
#include "bench/compare/virtual/outcome.h"
#include "bench/compare/virtual/plan.h"

namespace syncopate::bench {

// Throws what train_virtually throws.
VirtualOutcome train_in_step(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device,
                             MetricsWriter& metrics, const std::function<void(double)>& progress);

}  // namespace syncopate::bench
