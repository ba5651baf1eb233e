// What a benchmark trains: the settings each network is usually quoted with, and samples that are
// in memory from the start, so that only the step is measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/strategy.h"
#include "worker/input/batch_source.h"

namespace syncopate::bench {

struct Workload {
  std::string model;
  Shape sample_shape;           // [H, W, C]
  std::int64_t batch_size = 0;  // of each replica
  std::string optimizer;
  int steps_per_round = 0;  // about a second of work on a few cores
  int classes = 10;
};

// Throws UsageError for an unknown model, listing the right ones.
Workload find_workload(std::string_view model);

// The network for the workload's samples.
Graph build_graph(const Workload& workload);

struct TrainingOptions {
  std::string strategy = "one-device";
  int replicas = 1;  // in this process
  int lanes = 1;     // of each replica
  double learning_rate = 1e-3;
  Device device;
  Precision precision = Precision::kF32;
  std::filesystem::path plan_file;  // of GPUs, as a training has it; empty: nothing is measured
  bool fuse = true;
  bool winograd = true;
  // Null: this process is alone. Outlives the training.
  Membership* membership = nullptr;
};

// Seconds of the parts of a step, median over the steps of one call.
struct StepParts {
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
};

// Training over a few random batches; where there are other tasks, every one makes the same calls.
// One thread only.
class InMemoryTraining {
 public:
  InMemoryTraining(const Workload& workload, const TrainingOptions& options);

  // Seconds of each of `steps` training steps, after one that is not counted (it wakes the lanes).
  // Throws DivergenceError when the loss is not a number.
  std::vector<double> run(int steps);
  // The same steps, taken apart; of one replica on its own.
  StepParts profile(int steps);
  // Of this task's first replica, since construction.
  CommunicationTimes communication() const;

  const Workload& workload() const noexcept { return workload_; }
  std::string description() const;  // of the backend

 private:
  UpdateStep next_update() noexcept;

  Workload workload_;
  TrainingOptions options_;
  Graph graph_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<BatchSource> batches_;
  std::int64_t step_ = 0;
};

}  // namespace syncopate::bench
