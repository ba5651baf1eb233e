// Parses --devices and --precision.
#pragma once

#include <string>

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct DeviceFlags {
  std::string devices = "cpu";
  std::string precision = "f32";
};

void add_device_flags(FlagSet& flags, DeviceFlags& devices);

// Fills the strategy's options from the flags. Does not check that the devices exist, because the
// flags may be parsed on another machine. Throws UsageError for a wrong value.
void take_device_flags(const DeviceFlags& flags, TrainOptions& options);

}  // namespace syncopate
