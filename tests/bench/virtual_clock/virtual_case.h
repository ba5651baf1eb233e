// Trains a small network on synthetic samples under the virtual clock or, for comparison, by the
// real train loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/virtual_clock/virtual_training.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {

class RecordedLines final : public MetricsWriter {
 public:
  void write(const BeginMetrics& /*metrics*/) override {}
  void write(const StepMetrics& metrics) override { steps.push_back(metrics); }
  void write(const EvalMetrics& metrics) override { evaluations.push_back(metrics); }
  void write(const WorkerMetrics& metrics) override { workers.push_back(metrics); }
  void write(const Summary& summary) override { summaries.push_back(summary); }
  std::vector<StepMetrics> steps;
  std::vector<EvalMetrics> evaluations;
  std::vector<WorkerMetrics> workers;
  std::vector<Summary> summaries;
};

// A VirtualCase trains, by default, one epoch of SGD with batches of 8 samples per worker.
class VirtualCase {
 public:
  static constexpr std::int64_t kBatch = 8;

  explicit VirtualCase(const std::string& strategy, std::int64_t samples = 256,
                       const std::string& model = "mlp", const std::string& split = "");

  TrainOptions options;
  FaultInjection faults;  // by default a step takes 10 ms
  int workers = 1;
  int servers = 0;

  // Trains under the virtual clock and replaces the metrics lines of the previous run.
  Summary train_virtually();
  // Trains once, with lines for this cluster and for others, which replace those of the previous
  // run.
  std::vector<RecordedLines> train_in_clusters(const std::vector<FaultInjection>& others);
  // Trains by the real loop, as `syncopate train --strategy S --replicas N` does.
  TrainOutcome train_in_real_time(const std::string& strategy, int replicas);

  const Graph& graph() const noexcept { return *graph_; }

  RecordedLines lines;
  std::vector<double> progress;

 private:
  DataSplits data_;
  std::unique_ptr<Graph> graph_;
};

// Compares a virtual run with the real strategy: the weights and, by the results of evaluations,
// the running statistics.
void expect_the_bits_of(VirtualCase& run, const std::string& strategy, int replicas);

}  // namespace syncopate::bench
