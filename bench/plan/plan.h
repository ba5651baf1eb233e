// Predicts the speed of each strategy on a cluster that exists only as a description. Measures a
// step and a server's update on this machine, and simulates the waiting of workers
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
#include "bench/plan/plan_rounds.h"
#include "bench/plan/plan_stages.h"
#include "bench/virtual_clock/timing.h"
#include "models/graph/graph.h"
#include "ps/shard/placement.h"

namespace syncopate::bench {

struct PlanOptions {
  // The strategies to plan, as words that parse_variant() (compare/variant.h) accepts.
  std::vector<std::string> strategies;
  // The names of the nodes at which pipeline stages end; if empty, the network is cut into stages
  // of about equal work.
  std::vector<std::string> cut;
  std::vector<int> workers = {2, 8, 64, 1000};
  int servers = 2;  // servers of parameter-server
  // A strategy that runs in a single process is recommended for at most this number of workers.
  int workers_per_machine = 1;
  Link link{.delay_seconds = 50e-6, .bytes_per_second = 10e9 / 8};
  // The distribution of step times. If empty, each step takes the measured step time. "exponential"
  // and "lognormal" have the measured step time as their mean. "exponential:20" has a mean of 20
  // ms. "compute+exponential:20" adds to the measured step time a delay with a mean of 20 ms, as
  // train --service-time does.
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
  // The length of a run. Without time_to_target, only rows that begin with sums of gradients have
  // a length.
  std::int64_t epochs = 2;
  std::vector<std::string> train_flags;
  std::filesystem::path json;  // the JSON file to write; empty: none
  std::filesystem::path cache_dir;
};

inline constexpr int kMostTrainedWorkers = 64;
// The link between two workers of one machine. Source: the all-reduce of two ranks in shared
// memory, which takes 3.27 us for 4 KB and 3.2 ms for 64 MB, and sends two messages of half the
// size (bench/README.md, All-reduce).
inline constexpr Link kInsideMachine{.delay_seconds = 1.6e-6, .bytes_per_second = 20e9};

// The time to the target accuracy and the final accuracy of training under the virtual clock.
struct TargetTime {
  std::optional<double> seconds;  // virtual time to the first evaluation at or above the target
  double accuracy = 0.0;          // accuracy at the end of training
  std::string failure;            // why training ended early; empty if it did not
};

// A row of the plan: one strategy with one number of workers.
struct PlanRow {
  Variant variant;
  TimingResult timing;
  double samples_per_second = 0.0;
  double speed_up = 0.0;    // samples_per_second / those of one worker that never waits
  double efficiency = 0.0;  // speed_up / workers
  std::optional<TargetTime> target;
  std::optional<PlannedPipeline> pipeline{};  // the stages of --strategy pipeline
  std::optional<PlannedRounds> rounds{};      // of local updates
};

// A predicted and a measured speed of the same job, in samples per second.
struct PredictionCheck {
  double predicted = 0.0;
  Spread measured;  // over several rounds
  double error() const noexcept { return predicted / measured.median - 1.0; }
};

// The speed at which one thread applies gradients to the shard of a server, without sockets.
// ps::Shard takes a push of a whole gradient, updates the values with SGD and copies the values for
// the answer.
struct ServerCalibration {
  std::int64_t bytes = 0;       // bytes of a gradient for the server with the most values
  double update_seconds = 0.0;  // median time of an update
  int pushes = 0;               // number of timed pushes
  double bytes_per_second() const noexcept {
    return update_seconds > 0.0 ? static_cast<double>(bytes) / update_seconds : 0.0;
  }
};
// Measures the update of a server on this machine. `plan` computes the time of servers from this
// measurement.
ServerCalibration calibrate_server(const Graph& graph, const ps::Placement& placement);

struct Plan {
  Calibration calibration;
  ServerCalibration server;
  // The predicted speed and the speed that measure_two_replicas() measured; empty if the data has
  // too few samples.
  std::optional<PredictionCheck> check;
  double foreign_share = 0.0;  // share of one core that other processes used in these measurements
  std::int64_t parameters = 0;
  std::vector<std::int64_t> server_bytes;  // bytes of the values on each server
  double mean_step_seconds = 0.0;          // mean of simulated steps, without slow workers
  // The highest number of gradients per second that the servers' links can carry. Empty if the
  // links have no limit.
  std::optional<double> most_pushes_per_second;
  // The highest number of gradients per second that the servers can apply.
  double most_updates_per_second = 0.0;
  double one_worker_samples_per_second = 0.0;
  std::vector<PlanRow> rows;          // ordered by strategy, then by workers
  std::vector<std::string> notes;     // remarks on flags of train
  std::vector<std::string> left_out;  // impossible combinations, with the reason

  std::int64_t model_bytes() const noexcept;
};

// The buckets of a network. Messages of neighbouring buckets are simulated as one message, so that
// thousands of workers take seconds.
struct PlanBuckets {
  TimedBuckets served;   // of strategies with servers
  TimedBuckets reduced;  // of strategies without servers
};
// Returns the buckets of a network. Throws UsageError when there are more servers than parts into
// which the model can be divided.
PlanBuckets plan_buckets_of(const Graph& graph, int servers);

// Sets the step times of `faults` from `text` (PlanOptions::service_time) and the measured time of
// a step. Throws UsageError for a wrong text.
void set_service_time(const std::string& text, double step_seconds, FaultInjection& faults);

// Returns the options with which simulate_timing() simulates a variant, or its rounds.
TimingOptions timing_of(const Variant& variant, const PlanBuckets& buckets,
                        const FaultInjection& faults, std::uint64_t seed);

// Makes the measurements, simulates the strategies, and prints the plan to `out`. Throws
// UsageError, FileError.
void run_plan(const PlanOptions& options, std::ostream& out);

}  // namespace syncopate::bench
