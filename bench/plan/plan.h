// syncopate-bench plan: what each strategy would do on a cluster that is described and not there:
// the step measured here, the waiting simulated (compare/virtual/timing.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/variant.h"
#include "bench/compare/virtual/timing.h"
#include "bench/harness/fault_injection.h"
#include "bench/plan/plan_calibration.h"

namespace syncopate::bench {

struct PlanOptions {
  std::vector<std::string> strategies;  // words of compare/variant.h
  std::vector<int> workers = {2, 8, 64, 1000};
  int servers = 2;              // of parameter-server
  int workers_per_machine = 1;  // more of one process are not recommended
  Link link{.delay_seconds = 50e-6, .bytes_per_second = 10e9 / 8};
  // "exponential", "lognormal": the measured step is the mean; "exponential:20": 20 ms are;
  // "compute+exponential:20": so much more than the measured step, as train --service-time has it.
  // Empty: each step takes what was measured.
  std::string service_time;
  std::vector<Slowness> slow;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  std::int64_t batch_size_per_replica = 32;
  int calibrate_steps = 300;
  std::int64_t gradients = 200'000;  // simulated for each row
  std::uint64_t seed = 1;
  // Also trains, under the virtual clock, where workers are few enough.
  bool time_to_target = false;
  double target_accuracy = 0.95;
  std::int64_t epochs = 2;
  std::vector<std::string> train_flags;
  std::filesystem::path json;  // empty: none
  std::filesystem::path cache_dir;
};

inline constexpr int kMostTrainedWorkers = 64;

// What training under the virtual clock came to.
struct TargetTime {
  std::optional<double> seconds;  // virtual, to the first evaluation at or above the target
  double accuracy = 0.0;          // at the end
  std::string failure;            // why it did not come to its end; empty: it did
};

// One strategy with one number of workers.
struct PlanRow {
  Variant variant;
  TimingResult timing;
  double samples_per_second = 0.0;
  double speed_up = 0.0;    // over one worker that waits for nobody
  double efficiency = 0.0;  // speed_up / workers
  std::optional<TargetTime> target;
};

struct Plan {
  Calibration calibration;
  std::int64_t parameters = 0;
  std::vector<std::int64_t> server_bytes;  // of each server's part of the values
  double mean_step_seconds = 0.0;          // that was simulated, of a worker that is not slow
  // The most updates of single gradients that the servers' links carry; none without a limit.
  std::optional<double> most_pushes_per_second;
  double one_worker_samples_per_second = 0.0;
  std::vector<PlanRow> rows;          // strategy by strategy, workers ascending
  std::vector<std::string> left_out;  // combinations without a meaning, and why

  std::int64_t model_bytes() const noexcept;
};

// Of each server's part of the values, as parameter-server places them. Throws UsageError when
// there are more servers than parts.
std::vector<std::int64_t> server_bytes_of(const Graph& graph, int servers);

// Service times as `text` says (PlanOptions::service_time), of a step measured at `step_seconds`.
// Throws UsageError.
void set_service_time(const std::string& text, double step_seconds, FaultInjection& faults);

// Of the variant on servers with these parts of the values.
TimingOptions timing_of(const Variant& variant, const std::vector<std::int64_t>& server_bytes,
                        const FaultInjection& faults, std::uint64_t seed);

// Measures, simulates, and says what came of it. Throws UsageError, FileError.
void run_plan(const PlanOptions& options, std::ostream& out);

}  // namespace syncopate::bench
