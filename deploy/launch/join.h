// Workers that come later than the others, on purpose: --join of launch and of syncopate-bench
// compare.
#pragma once

#include <string>
#include <vector>

namespace syncopate {

struct Join {
  int worker = 0;
  double at_seconds = 0.0;  // after the others
};

// "worker=4,at=30s". Throws UsageError.
Join parse_join(const std::string& text);
std::string to_string(const Join& join);  // as parse_join reads it

// So many numbers there are where `workers` are asked for: those that come later may have higher
// ones.
int places_of(int workers, const std::vector<Join>& joins);
// Numbers, ascending, of those that are not there at the start: the late ones, and those between
// `workers` and them, who never come.
std::vector<int> late_workers(int workers, const std::vector<Join>& joins);

}  // namespace syncopate
