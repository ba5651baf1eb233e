#include "bench/plan/plan.h"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <set>
#include <string_view>

#include "bench/compare/virtual/outgoing_gradient.h"
#include "bench/harness/report.h"
#include "bench/plan/plan_report.h"
#include "bench/plan/plan_target.h"
#include "bench/plan/plan_verdict.h"
#include "models/base/errors.h"
#include "ps/shard/placement.h"
#include "strategies/strategy_options.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

// Equals that of parameter_server.cc.
constexpr std::int64_t kMessageBytes = std::int64_t{1} << 20;
constexpr std::string_view kAdded = "compute+";

// Counts the parameters without alignment padding.
std::int64_t parameters_of(const ArenaLayout& layout) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) elements += layout.size(i);
  return elements;
}

class Planner {
 public:
  explicit Planner(const PlanOptions& options)
      : options_(options),
        data_(open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = 1})),
        graph_(network_for_data(options.model, options.data, data_)) {
    plan_.parameters = parameters_of(graph_.parameter_layout());
    plan_.server_bytes = server_bytes_of(graph_, options.servers);
  }

  Plan run() {
    plan_.calibration =
        calibrate(graph_, *data_.train, options_.batch_size_per_replica, options_.calibrate_steps);
    faults_.slow = options_.slow;
    faults_.link = options_.link;
    set_service_time(options_.service_time, plan_.calibration.step_seconds, faults_);
    plan_.mean_step_seconds =
        faults_.compute_seconds + faults_.service_time.mean_milliseconds / 1e3;
    if (options_.link.bytes_per_second > 0.0) {
      plan_.most_pushes_per_second =
          options_.link.bytes_per_second /
          static_cast<double>(*std::ranges::max_element(plan_.server_bytes));
    }
    plan_.one_worker_samples_per_second = samples_per_second(one_worker());
    for (const std::string& word : options_.strategies) add_rows(word);
    return std::move(plan_);
  }

 private:
  double samples_per_second(const TimingResult& timing) const {
    return timing.gradients_per_second() * static_cast<double>(options_.batch_size_per_replica);
  }

  // Simulates one worker without slowness that waits for no other worker.
  TimingResult one_worker() const {
    FaultInjection alone = faults_;
    alone.slow.clear();
    TimingOptions timing =
        timing_of(parse_variant("one-device", 1, 0), plan_.server_bytes, alone, options_.seed);
    timing.gradients = options_.gradients;
    return simulate_timing(timing);
  }

  void add_rows(const std::string& word) {
    std::set<int> seen;
    for (const int workers : options_.workers) {
      const Variant variant = parse_variant(word, workers, options_.servers);
      if (!seen.insert(variant.workers).second) continue;  // one-device always has one worker.
      if (variant.backup_workers >= variant.workers) {
        plan_.left_out.push_back(variant.label + " with " + std::to_string(variant.workers) +
                                 ": at least one worker must be waited for");
        continue;
      }
      add_row(variant);
    }
  }

  void add_row(const Variant& variant) {
    TimingOptions timing = timing_of(variant, plan_.server_bytes, faults_, options_.seed);
    timing.gradients = options_.gradients;
    PlanRow row{.variant = variant, .timing = simulate_timing(timing), .target = std::nullopt};
    row.samples_per_second = samples_per_second(row.timing);
    row.speed_up = row.samples_per_second / plan_.one_worker_samples_per_second;
    row.efficiency = row.speed_up / variant.workers;
    if (options_.time_to_target && variant.workers <= kMostTrainedWorkers) {
      row.target = time_to_target(options_, variant, faults_, data_);
    }
    plan_.rows.push_back(std::move(row));
  }

  const PlanOptions& options_;
  const DataSplits data_;
  const Graph graph_;
  FaultInjection faults_;
  Plan plan_;
};

}  // namespace

std::int64_t Plan::model_bytes() const noexcept {
  return std::accumulate(server_bytes.begin(), server_bytes.end(), std::int64_t{0});
}

std::vector<std::int64_t> server_bytes_of(const Graph& graph, int servers) {
  const ps::Placement placement = ps::place_variables(
      graph.parameter_layout(), {.servers = servers, .message_bytes = kMessageBytes});
  std::vector<std::int64_t> bytes;
  for (int s = 0; s < servers; ++s) bytes.push_back(bytes_of_values(placement, s));
  return bytes;
}

void set_service_time(const std::string& text, double step_seconds, FaultInjection& faults) {
  faults.compute_seconds = 0.0;
  faults.service_time = {};
  std::string spread = text;
  if (spread.starts_with(kAdded)) {
    faults.compute_seconds = step_seconds;
    spread.erase(0, kAdded.size());
  } else if (spread.empty() || spread == "constant") {
    faults.compute_seconds = step_seconds;
    return;
  } else if (spread == "exponential" || spread == "lognormal") {
    faults.service_time = parse_service_time(spread + ":1", "--service-time");
    faults.service_time.mean_milliseconds = 1e3 * step_seconds;
    return;
  }
  faults.service_time = parse_service_time(spread, "--service-time");
}

TimingOptions timing_of(const Variant& variant, const std::vector<std::int64_t>& server_bytes,
                        const FaultInjection& faults, std::uint64_t seed) {
  const ps::ConsistencyOptions consistency = variant.consistency;
  const std::int64_t all =
      std::accumulate(server_bytes.begin(), server_bytes.end(), std::int64_t{0});
  const bool is_central = variant.strategy == "central-storage";
  return {.strategy = variant.strategy,
          .workers = variant.workers,
          // With one replica, central storage keeps its variables on the replica's device.
          .has_servers = variant.servers > 0 ||
                         (is_central && (!is_synchronous(consistency) || variant.workers > 1)),
          .consistency = consistency,
          .server_bytes = variant.servers > 0 ? server_bytes : std::vector<std::int64_t>{all},
          .faults = faults,
          .seed = seed};
}

void run_plan(const PlanOptions& options, std::ostream& out) {
  require_writable(options.json);
  const Plan plan = Planner(options).run();
  print_plan(out, options, plan);
  out << "\n" << verdict_of(options, plan) << "\n";
  if (!options.json.empty()) write_report(options.json, json_of(options, plan));
}

}  // namespace syncopate::bench
