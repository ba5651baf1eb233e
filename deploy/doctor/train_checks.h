// Finds the errors that train reports before its first step, with train's own checks. look.cc calls
// it.
#pragma once

#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "worker/input/dataset.h"

namespace syncopate {

// Returns one line for each refusal, in the words of train. Files that only the chief reads and
// writes are checked by the chief alone. Throws nothing and leaves no files behind.
std::vector<std::string> refusals_of_train(const TrainOptions& options, const DataSplits& data);

}  // namespace syncopate
