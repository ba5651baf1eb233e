// The end of the verdict: which variant to take, as far as the runs can tell.
#pragma once

#include <string>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/findings.h"

namespace syncopate::bench {

// A sentence without its full stop. A variant that failed or is not done yet is not recommended
// while another is complete. `rows` has one that is done.
std::string recommendation(const Comparison& comparison, const Rows& rows);

}  // namespace syncopate::bench
