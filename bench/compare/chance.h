// How often guessing is right.
#pragma once

#include "bench/compare/report/comparison.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Of the test split: whoever always says the most frequent class is right that often. Looks at
// 10,000 samples at most. Throws what the dataset throws.
Chance chance_of(const Dataset& test);

}  // namespace syncopate::bench
