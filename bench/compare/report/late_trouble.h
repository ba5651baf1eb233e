// Trouble at a time (kills, pauses, workers who join) that came when the target had been reached:
// no time to the target shows it.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

struct LateTrouble {
  std::string flag;  // of compare: "--kill"
  std::string value;
  // Rows of all whose runs it is true; those that it could not befall are not among them.
  std::vector<std::size_t> rows;
  bool is_for_all = false;  // it came too late for whomever it could befall
};

// What was late for one row at least.
std::vector<LateTrouble> late_trouble(const Comparison& comparison);

// The comparison's trouble, without that which was late for all.
std::string felt_trouble(const Comparison& comparison);

}  // namespace syncopate::bench
