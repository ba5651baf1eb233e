// What `syncopate-bench step` does, apart from its flags (step_command.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/step/workload.h"

namespace syncopate::bench {

struct StepOptions {
  std::vector<std::string> models = {"mnist-cnn", "resnet20", "resnet56"};
  // 0 and empty: the workload's own.
  std::int64_t batch_size = 0;
  std::string optimizer;
  int steps_per_round = 0;
  int rounds = 7;
  // The other side: a command, or an interpreter for bench/peers/torch_step.py, on a GPU for
  // torch_gpu_step.py. Both empty: none.
  std::string peer;
  std::string peer_python;
  std::string json_file;
  std::string retune_file;  // write the algorithm table there instead of timing steps
  bool quick = false;
  bool no_fuse = false;
  bool no_winograd = false;
  bool profile = false;
  TrainingOptions training;
};

// Measures each model in turn and prints one table for each; all names are checked before the
// first. Throws UsageError, UnavailableError where the device is not here, PeerError,
// DivergenceError.
void run_step(StepOptions options);

}  // namespace syncopate::bench
