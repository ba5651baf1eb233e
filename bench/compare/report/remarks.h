// The rest of the verdict: what else a reader of its first sentences should know.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/findings.h"

namespace syncopate::bench {

// Sentences, with their full stops.
std::vector<std::string> remarks(const Comparison& comparison, const Rows& rows);

}  // namespace syncopate::bench
