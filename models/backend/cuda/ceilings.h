// Measures the highest rates that a device reaches: a large copy and a large matrix product.
#pragma once

#include "models/backend/cuda_module.h"

namespace syncopate::cuda {

// Measures a device's highest rates for a tenth of a second, with 2.5 GiB of device memory. Throws
// DeviceError, OutOfMemoryError.
DeviceCeilings measure_ceilings(int device, Precision precision);

}  // namespace syncopate::cuda
