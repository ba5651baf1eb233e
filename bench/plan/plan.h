// Predicts what each strategy would do on a cluster that exists only as a description. It measures
// a step and a server's update on this machine and simulates the waiting
// (virtual_clock/timing.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/variant.h"
#include "bench/harness/fault_injection.h"
#include "bench/harness/step_calibration.h"
#include "bench/plan/plan_stages.h"
#include "bench/plan/server_calibration.h"
#include "bench/virtual_clock/timing.h"
#include "models/graph/graph.h"

namespace syncopate::bench {

struct PlanOptions {
  std::vector<std::string> strategies;  // strategies, in the words of compare/variant.h
  std::vector<std::string> cut;         // nodes behind which pipelines are cut; empty: equal work
  std::vector<int> workers = {2, 8, 64, 1000};
  int servers = 2;              // The number of servers of parameter-server.
  int workers_per_machine = 1;  // bounds the workers of a recommended single process
  Link link{.delay_seconds = 50e-6, .bytes_per_second = 10e9 / 8};
  // The compute delay. "exponential" and "lognormal" have the measured step as their mean;
  // "exponential:20" has a mean of 20 ms; "compute+exponential:20" adds the delay to the measured
  // step, as train --service-time does. If empty, each step takes the measured time.
  std::string service_time;
  std::vector<Slowness> slow;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  std::int64_t batch_size_per_replica = 32;
  int calibrate_steps = 300;
  std::int64_t gradients = 200'000;  // number of gradients simulated for each row
  std::uint64_t seed = 1;
  // If true, rows with up to kMostTrainedWorkers workers are also trained under the virtual clock.
  bool time_to_target = false;
  double target_accuracy = 0.95;
  std::int64_t epochs = 2;
  std::vector<std::string> train_flags;
  std::filesystem::path json;  // file for JSON; empty: none is written
  std::filesystem::path cache_dir;
};

inline constexpr int kMostTrainedWorkers = 64;
// The link between two workers of one machine. Source: the all-reduce of two ranks in shared memory
// (bench/README.md, All-reduce), which is two messages of half the size: 4 KB in 3.27 us and 64 MB
// in 3.2 ms.
inline constexpr Link kInsideMachine{.delay_seconds = 1.6e-6, .bytes_per_second = 20e9};

// The result of training under the virtual clock.
struct TargetTime {
  std::optional<double> seconds;  // virtual time to the first evaluation at or above the target
  double accuracy = 0.0;          // accuracy at the end of training
  std::string failure;            // Says why training ended early; empty if it did not.
};

// A row of the plan: one strategy with one number of workers.
struct PlanRow {
  Variant variant;
  TimingResult timing;
  double samples_per_second = 0.0;
  double speed_up = 0.0;    // relative to one worker that never waits
  double efficiency = 0.0;  // speed_up / workers
  std::optional<TargetTime> target;
  std::optional<PlannedPipeline> pipeline{};  // the stages of --strategy pipeline
};

// A prediction beside the same job in reality, both in samples per second.
struct PredictionCheck {
  double predicted = 0.0;
  Spread measured;  // samples per second over rounds
  double error() const noexcept { return predicted / measured.median - 1.0; }
};

struct Plan {
  Calibration calibration;
  ServerCalibration server;
  // kCheckedWorkers replicas of mirrored in this process; empty if the data is too small.
  std::optional<PredictionCheck> check;
  double foreign_share = 0.0;  // share of one core that other processes used in these measurements
  std::int64_t parameters = 0;
  std::vector<std::int64_t> server_bytes;  // bytes of the values on each server
  double mean_step_seconds = 0.0;          // simulated mean of a worker that is not slow
  // The highest number of gradients per second that the servers' links carry. Empty without a
  // limit.
  std::optional<double> most_pushes_per_second;
  double most_updates_per_second = 0.0;  // highest number of gradients that the servers apply
  double one_worker_samples_per_second = 0.0;
  std::vector<PlanRow> rows;          // Ordered by strategy, then by workers, ascending.
  std::vector<std::string> notes;     // remarks on flags of train
  std::vector<std::string> left_out;  // impossible combinations, with the reason

  std::int64_t model_bytes() const noexcept;
};

// Returns the bytes of the values on each server, as parameter-server places them. Throws
// UsageError when there are more servers than parts of the model.
std::vector<std::int64_t> server_bytes_of(const Graph& graph, int servers);

// Sets the compute delays from `text` (PlanOptions::service_time) and a measured step of
// `step_seconds`. Throws UsageError.
void set_service_time(const std::string& text, double step_seconds, FaultInjection& faults);

// Returns the simulation options of the variant. `server_bytes` has the bytes of the values on each
// server.
TimingOptions timing_of(const Variant& variant, const std::vector<std::int64_t>& server_bytes,
                        const FaultInjection& faults, std::uint64_t seed);

// Measures, simulates and prints the plan to `out`. Throws UsageError, FileError.
void run_plan(const PlanOptions& options, std::ostream& out);

}  // namespace syncopate::bench
