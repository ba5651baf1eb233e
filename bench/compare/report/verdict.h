// What a comparison has shown, in words: one paragraph of plain text, every number computed, no
// claim beyond the runs. The first row is what others are held against.
#pragma once

#include <string>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Labels and reasons stand in it as they came: whoever shows it makes them harmless.
std::string verdict(const Comparison& comparison);

}  // namespace syncopate::bench
