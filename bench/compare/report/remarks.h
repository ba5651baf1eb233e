// The second part of the verdict: failures, runs that are missing, and other facts that the reader
// of the recommendation should know.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/summary.h"

namespace syncopate::bench {

// Sentences with full stops. rows: summarise(comparison).
std::vector<std::string> remarks(const Comparison& comparison, const Rows& rows);

}  // namespace syncopate::bench
