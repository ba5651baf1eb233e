// Tasks may find the same data under other paths, so what they found is compared, not its name.
#pragma once

#include <string>

#include "models/zoo/zoo.h"
#include "strategies/cluster/membership.h"
#include "worker/input/dataset.h"

namespace syncopate {

// Sizes, shapes, classes and hashes of a few samples, as text. Throws what the datasets throw.
std::string describe_samples(const DataSplits& data);

// The same of what is trained on alone: where in it a run stands means nothing in other samples,
// while a test split may be corrected or enlarged.
std::string describe_training_samples(const DataSplits& data);

// Every task calls: sizes, shapes, classes and a few samples. Throws UsageError naming a task that
// differs from rank 0; what the datasets throw; PeerError.
void require_same_data(const DataSplits& data, Membership& membership);

// The network that --model names, shaped for the samples that --data names.

// Throws UsageError naming both flags when the samples are too small for the network.
Graph network_for_data(const std::string& model, const std::string& data_flag,
                       const DataSplits& data);

}  // namespace syncopate
