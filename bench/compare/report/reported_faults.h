// Injected faults in words, and whether they came early enough to matter: a kill, a pause or a join
// after the target was reached has no effect on the time to the target.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Turns "--service-time exponential:1 --slow worker=7,factor=4" into "compute delay exponential:1
// and worker 7 slowed 4x". A text that is not a list of fault flags is returned unchanged.
std::string describe_faults(const std::string& faults);

struct LateFault {
  std::string flag;  // the flag of the fault, "--kill"
  std::string value;
  std::vector<std::size_t> rows;  // variants whose runs had reached the target before
  bool is_for_all = false;        // whether the fault came too late for all variants
};

// Returns the faults that came too late for at least one variant.
std::vector<LateFault> late_faults(const Comparison& comparison);

// Returns the flags of the comparison's faults, without those that came too late for every variant.
std::string effective_faults(const Comparison& comparison);

}  // namespace syncopate::bench
