// What the tasks of one run must have been told alike, compared when they meet.
#pragma once

#include <vector>

#include "worker/run/train_options.h"

namespace syncopate {

std::vector<Agreement> agreements_of(const TrainOptions& options);

}  // namespace syncopate
