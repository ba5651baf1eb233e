// Computes the accuracy and the loss that guessing reaches on the data of a comparison. Reports
// warn if a variant is not better than this accuracy.
#pragma once

#include "bench/compare/report/comparison.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Returns the accuracy of a classifier that always predicts the most frequent class of the test
// split. The classes are counted over at most 10,000 samples, or over the pixels of at most 200
// label maps.
Chance chance_of(const DataSplits& data);

// Returns the cross-entropy, in nats, of a classifier that always predicts the frequencies of the
// classes. The classes are counted as by chance_of().
double loss_of_chance(const DataSplits& data);

}  // namespace syncopate::bench
