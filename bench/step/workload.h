// Defines what a benchmark trains: the settings that each network is usually quoted with, and its
// samples. They are the samples of --data, or random ones that are in memory from the start, so
// that only the step is measured.
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
  int steps_per_round = 0;  // about one second of work on a few cores
  int classes = 10;
  Shape target_shape{};  // [] for a class of the sample, [H, W] for a class of every pixel
  // The samples of --data; null: random ones in memory.
  std::shared_ptr<const DataSplits> data{};
  std::string data_flag{};  // the value of --data
  int input_threads = 1;    // threads that read the samples of `data`
};

// Returns the networks that have a workload.
std::vector<std::string_view> workload_models();
// Returns these networks and "file:NET.json", for commands with --data, which says what a sample
// is.
std::vector<std::string_view> workload_models_and_files();
// Returns the workload of a model. If the model is a network file, the workload has no samples
// until with_data() gives it some. Throws UsageError for an unknown model.
Workload find_workload(std::string_view model);

// Builds the network for the workload's samples. Throws UsageError if it has none, and what
// build_network throws.
Graph build_graph(const Workload& workload);

struct TrainingOptions {
  std::string strategy = kOneDevice;
  int replicas = 1;  // number of replicas in this process
  int lanes = 1;     // number of lanes per replica
  double learning_rate = 1e-3;
  Device device;
  Precision precision = Precision::kF32;
  // The GPU plan file, as in training; if empty, nothing is tuned.
  std::filesystem::path plan_file;
  bool fuse = true;
  bool winograd = true;
  // The other tasks; null: this process is the only task. The membership must outlive the training.
  Membership* membership = nullptr;
};

// The seconds of the parts of a step; each is the median over the steps of one call.
struct StepParts {
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
};

// A training on a few random batches or, in an endless sequence of epochs, on the data. If the job
// has several tasks, every task must make the same calls. One thread only.
class WorkloadTraining {
 public:
  WorkloadTraining(const Workload& workload, const TrainingOptions& options);

  // Trains `steps` steps and returns the seconds of each, after one uncounted step that starts the
  // lanes. Throws DivergenceError when the loss is not a number.
  std::vector<double> run(int steps);
  // Times forward, backward and update of `steps` steps, on one replica without communication.
  StepParts profile(int steps);
  // Returns the median over `steps` steps of the time of each fused group on the first replica's
  // device; empty on a CPU.
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
