// A GPU while a step was measured, beside what it reaches at most: lines for people, JSON for
// programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/step/step_work.h"
#include "models/backend/cuda_module.h"

namespace syncopate::bench {

struct DeviceFigures {
  DeviceCeilings ceilings;    // measured just before
  StepWork work;              // of a step
  std::vector<double> busy;   // of our turns, as the driver says; empty where it does not
  double memory_bytes = 0.0;  // everybody's, the most
};

// "72.1 TFLOP/s, 9.1% of the 790 of a large product; ..."
std::string describe(const DeviceFigures& figures, double step_seconds);
nlohmann::json figures_json(const DeviceFigures& figures, double step_seconds);

}  // namespace syncopate::bench
