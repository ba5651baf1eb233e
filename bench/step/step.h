// Runs `syncopate-bench step`; step_command.cc declares its flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/step/workload.h"

namespace syncopate::bench {

struct StepOptions {
  std::vector<std::string> models = {"mnist-cnn", "resnet20", "resnet56"};
  // With 0 or an empty text, the workload's own value is used for the next three options.
  std::int64_t batch_size = 0;
  std::string optimizer;
  int steps_per_round = 0;
  int rounds = 7;
  // `peer` is the command of the other side. `peer_python` is an interpreter that runs
  // bench/peers/torch_step.py, or torch_gpu_step.py for a GPU. If both are empty, there is no peer.
  std::string peer;
  std::string peer_python;
  std::string json_file;
  std::string retune_file;  // If set, this file gets the algorithm table and no steps are timed.
  bool quick = false;
  bool no_fuse = false;
  bool no_winograd = false;
  bool profile = false;
  TrainingOptions training;
};

// Measures each model in turn and prints one table per model. All names are checked before the
// first measurement. Throws UsageError, UnavailableError where the device is missing, PeerError,
// DivergenceError.
void run_step(StepOptions options);

}  // namespace syncopate::bench
