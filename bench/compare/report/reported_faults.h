// Injected faults in words, and whether they came early enough to matter: a kill, a pause or a join
// after the target was reached has no effect on the time to the target.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// "--service-time exponential:1 --slow worker=7,factor=4" becomes "compute delay exponential:1 and
// worker 7 slowed 4x". A text that is not a list of fault flags is returned unchanged.
std::string describe_faults(const std::string& faults);

struct LateFault {
  std::string flag;  // "--kill"
  std::string value;
  std::vector<std::size_t> rows;  // the variants whose runs had all reached the target before
  bool is_for_all = false;        // true if it came in time for no variant that it applies to
};

// The faults that came too late for at least one variant.
std::vector<LateFault> late_faults(const Comparison& comparison);

// The flags of the comparison's faults, without those that came too late for every variant.
std::string effective_faults(const Comparison& comparison);

}  // namespace syncopate::bench
