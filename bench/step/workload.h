// Defines what a benchmark trains: a network with the settings that published results usually have,
// and samples. The samples come from --data, or are random and in memory from the start, so that
// only the step is measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/strategy.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate::bench {

struct Workload {
  std::string model;
  Shape sample_shape;           // shape of a sample, [H, W, C]
  std::int64_t batch_size = 0;  // number of samples per replica
  std::string optimizer;
  int steps_per_round = 0;  // number of steps that take about 1 s on a few cores
  int classes = 10;
  Shape target_shape{};  // []: a class for the sample; [H, W]: a class for each pixel
  // The samples of --data; null: random samples in memory.
  std::shared_ptr<const DataSplits> data{};
  std::string data_flag{};  // the value of --data
  int input_threads = 1;    // threads that read the samples of `data`
};

// Returns the networks that have a workload.
std::vector<std::string_view> workload_models();
// Returns workload_models() and "file:NET.json", for commands that have --data, because a network
// file needs the shape of the samples.
std::vector<std::string_view> workload_models_and_files();
// Returns the workload of a model. The workload of a network file has no samples until with_data()
// sets them. Throws UsageError for an unknown model.
Workload find_workload(std::string_view model);

// Builds the network for the samples of the workload. Throws UsageError if the workload has no
// samples, and what build_network() throws.
Graph build_graph(const Workload& workload);

struct TrainingOptions {
  std::string strategy = kOneDevice;
  int replicas = 1;  // number of replicas in this process
  int lanes = 1;     // number of lanes per replica
  double learning_rate = 1e-3;
  Device device;
  Precision precision = Precision::kF32;
  // The value of BackendOptions::plan_file; if empty, no engines are measured.
  std::filesystem::path plan_file;
  bool fuse = true;
  bool winograd = true;
  // The connection to the other tasks, which must outlive the training. Null: this process is the
  // only task.
  Membership* membership = nullptr;
};

// The times of the parts of a training step in seconds. Each is the median over the steps of one
// call of WorkloadTraining::profile().
struct StepParts {
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
};

// Trains a workload, on a few random batches or, epoch after epoch, on the samples of --data. If
// the job has several tasks, every task must make the same calls. One thread only.
class WorkloadTraining {
 public:
  WorkloadTraining(const Workload& workload, const TrainingOptions& options);

  // Trains `steps` steps and returns the seconds of each step. The first step, which starts the
  // lanes, is trained in addition and not timed. Throws DivergenceError when the loss is not a
  // number.
  std::vector<double> run(int steps);
  // Times the forward pass, backward pass and update of `steps` steps, on one replica without
  // communication.
  StepParts profile(int steps);
  // Returns the time of each fused group on the device of the first replica, as the median over
  // `steps` steps. Empty on a CPU.
  std::vector<GroupTime> time_groups(int steps);
  // Returns the communication times of this task's first replica since construction.
  CommunicationTimes communication() const;

  const Workload& workload() const noexcept { return workload_; }
  const Graph& graph() const noexcept { return graph_; }
  std::string description() const;  // describes the backend

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
