// What a device reaches at most, measured: a large copy and a large product.
#pragma once

#include "models/backend/cuda_module.h"

namespace syncopate::cuda {

// A tenth of a second; takes 2.5 GiB of the device for that time. Throws DeviceError,
// OutOfMemoryError.
DeviceCeilings measure_ceilings(int device, Precision precision);

}  // namespace syncopate::cuda
