// What train refuses before it takes a step, found by train's own checks. Called by look.cc.
#pragma once

#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "worker/input/dataset.h"

namespace syncopate {

// One line each, as train would say it. What only the chief reads and writes is looked at by the
// chief. Nothing is thrown, and nothing is left behind.
std::vector<std::string> refusals_of_train(const TrainOptions& options, const DataSplits& data);

}  // namespace syncopate
