// When workers that keep no step are done: async, ssp, and sync with backup workers, without
// values. Called by timing.cc.
#pragma once

#include "bench/compare/virtual/timing.h"
#include "bench/compare/virtual/timing_window.h"

namespace syncopate::bench {

// Runs until the window is over; updates are counted at server 0, as a real job's are.
void simulate_without_step(const TimingOptions& options, TimingWindow& window);

}  // namespace syncopate::bench
