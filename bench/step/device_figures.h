// Compares the speed of a GPU during a measured step with the highest speed the GPU reaches, as
// text for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/step/step_work.h"
#include "models/backend/cuda_module.h"

namespace syncopate::bench {

struct DeviceFigures {
  DeviceCeilings ceilings;    // The highest speeds, measured just before the step.
  StepWork work;              // The work of one step.
  std::vector<double> busy;   // Utilisation per turn from the driver; empty if not reported.
  double memory_bytes = 0.0;  // The peak memory use of all processes on the device.
};

// Returns text such as "72.1 TFLOP/s, 9.1% of the 790 of a large product; ...".
std::string describe(const DeviceFigures& figures, double step_seconds);
nlohmann::json figures_json(const DeviceFigures& figures, double step_seconds);

}  // namespace syncopate::bench
