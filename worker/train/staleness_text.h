// How stale gradients were, over workers and as people read it.
#pragma once

#include <span>
#include <string>

#include "strategies/asynchronous_job.h"

namespace syncopate {

// Of all workers together.
ps::StalenessHistogram merge_staleness(std::span<const WorkerStaleness> workers);

// "mean 2.98, max 11 over 2812 pushes; by worker 2.97 2.99 3.01 2.95"
std::string describe_staleness(std::span<const WorkerStaleness> workers);

}  // namespace syncopate
