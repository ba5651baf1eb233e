// Late workers: workers that join a running job at a given time, as --join of `launch` and of
// `syncopate-bench compare` requests.
#pragma once

#include <string>
#include <vector>

namespace syncopate {

struct Join {
  int worker = 0;
  double at_seconds = 0.0;  // the start time, in seconds after the start of the other roles
};

// Parses a text such as "worker=4,at=30s". Throws UsageError if the text has another form.
Join parse_join(const std::string& text);
std::string to_string(const Join& join);  // Returns the text that parse_join() reads.

// Returns how many worker indices the job has: `workers`, or more where a late worker has a higher
// index.
int places_of(int workers, const std::vector<Join>& joins);
// Returns, in ascending order, the indices of the workers that are absent at the start: the late
// workers, and the unused indices between `workers` and the highest late worker.
std::vector<int> late_workers(int workers, const std::vector<Join>& joins);

}  // namespace syncopate
