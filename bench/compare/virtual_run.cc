#include "bench/compare/virtual_run.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "bench/virtual_clock/step_times.h"
#include "bench/virtual_clock/time_model.h"
#include "bench/virtual_clock/timed_buckets.h"
#include "bench/virtual_clock/virtual_plan.h"
#include "models/base/errors.h"
#include "models/tensor/parameter_arena.h"
#include "worker/checkpoint/weights_file.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

// Returns the buckets of a step that does not overlap with messages, because the prediction does
// not know how long a step computes.
TimedBuckets without_overlap(TimedBuckets buckets) {
  buckets.profile = StepProfile(buckets.bytes.size());
  return buckets;
}

VirtualTime of_all_at_once(const VirtualPlan& plan, const Link& link) {
  const TimedBuckets buckets = without_overlap(plan.buckets);
  const std::int64_t steps = plan.steps_per_exchange();
  // A simulated step needs a compute time above 0, so each takes 1 ms, which is subtracted below.
  FaultInjection faults{
      .service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = 1.0}, .link = link};
  StepTimes times({.strategy = plan.strategy.name,
                   .workers = plan.tasks(),
                   .buckets = buckets,
                   .steps_per_exchange = steps,
                   .pipeline = plan.pipeline},
                  faults, 1);
  if (plan.pipeline) {
    times.step(1, buckets.bytes);
    return times.accounts().front().communication;
  }
  return (times.step(steps, buckets.bytes) - steps * std::chrono::milliseconds(1)) / steps;
}

VirtualTime of_one_alone(const VirtualPlan& plan, const Link& link) {
  const std::vector<std::int64_t> bytes = plan.buckets.bytes_by_server();
  const int servers = plan.buckets.servers();
  Network network(link, 1, servers);
  VirtualTime end{0};
  for (int s = 0; s < servers; ++s) {
    const std::int64_t part = bytes[static_cast<std::size_t>(s)];
    end = std::max(end, network.down(network.up(VirtualTime(0), 0, s, part), s, 0, part));
  }
  return end;
}

}  // namespace

Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      std::span<const OtherTimes> others,
                      const std::function<void(double)>& progress) {
  if (!run.refusal.empty()) throw UsageError(run.refusal);
  const TrainOptions& train = run.train;
  const Graph graph =
      network_for_data(train.model, train.data, data, train.network, train.label_smoothing);
  return train_in_clusters({.options = train,
                            .workers = run.variant.workers,
                            .servers = run.variant.servers,
                            .data = data,
                            .graph = graph,
                            .faults = run.faults},
                           metrics, others, progress);
}

std::vector<std::string> describe_initial_weights(const std::vector<TrainOptions>& runs,
                                                  const DataSplits& data) {
  std::vector<std::string> notes;
  std::set<std::pair<std::filesystem::path, std::string>> described;  // files, with their --head
  for (const TrainOptions& train : runs) {
    if (train.init_from.empty()) continue;
    if (!described.emplace(train.init_from, train.network.head).second) continue;
    const Graph graph = network_for_data(train.model, train.data, data, train.network);
    const ParameterArena arena(graph.parameter_layout(), {});
    const StateBlock state(graph.state_layout());
    notes.push_back("first values " +
                    load_weights(train.init_from, graph, train.strategy.seed,
                                 {.values = arena.values(), .slots = {}, .state = state.values}));
  }
  return notes;
}

std::optional<double> predict_communication(const RunSpec& run, const DataSplits& data) {
  if (!run.variant.has_tasks() || run.faults.link.is_plain()) return std::nullopt;
  if (!run.refusal.empty()) return std::nullopt;
  try {
    const TrainOptions& options = run.train;
    if (options.strategy.parameter_server.compression.codec != ps::Codec::kF32) {
      return std::nullopt;
    }
    const Graph graph = network_for_data(options.model, options.data, data, options.network);
    const VirtualPlan plan = plan_of({.options = options,
                                      .workers = run.variant.workers,
                                      .servers = run.variant.servers,
                                      .data = data,
                                      .graph = graph,
                                      .faults = {}});
    const Link& link = run.faults.link;
    return seconds_of(plan.is_synchronous ? of_all_at_once(plan, link) : of_one_alone(plan, link));
  } catch (const UsageError&) {
    return std::nullopt;  // training refuses the same options and reports the error
  }
}

}  // namespace syncopate::bench
