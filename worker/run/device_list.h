// Reads --devices and --precision.
#pragma once

#include <string>

#include "worker/run/train_options.h"

namespace syncopate {

// Fills strategy.devices and takes_own_gpus from "cpu", "cuda" or a list such as "cuda:0,cuda:1".
// Does not check that the devices exist, because the flags may be parsed on another machine. Throws
// UsageError for a wrong list, with a suggestion if another program's notation can be recognised.
void read_devices(const std::string& list, TrainOptions& options);
// Completes the options that say which devices the task uses. Call it after all flags are parsed.
// Throws UsageError if the devices do not support --precision.
void complete_devices(TrainOptions& options);

}  // namespace syncopate
