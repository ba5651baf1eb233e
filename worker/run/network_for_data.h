// The network that --model names, shaped for the samples that --data names.
#pragma once

#include <string>

#include "models/zoo/zoo.h"
#include "worker/input/dataset.h"

namespace syncopate {

// Throws UsageError naming both flags when the samples are too small for the network.
Graph network_for_data(const std::string& model, const std::string& data_flag,
                       const DataSplits& data);

}  // namespace syncopate
