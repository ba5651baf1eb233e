// Reads --devices and --precision.
#pragma once

#include <string>

#include "worker/run/train_options.h"

namespace syncopate {

// Fills strategy.devices and takes_own_gpus from "cpu", "cuda" or a list such as "cuda:0,cuda:1".
// Does not check that the devices exist, because the flags may be parsed on another machine. Throws
// UsageError for a wrong list, with the one that was probably meant.
void read_devices(const std::string& list, TrainOptions& options);
// Completes the options of devices after all flags are parsed. Throws UsageError for a precision
// that the devices lack.
void complete_devices(TrainOptions& options);

}  // namespace syncopate
