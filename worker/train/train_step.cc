#include "worker/train/train_step.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

// Returns the replica's share of the task's batch. is_local: see Strategy::is_local().
const Batch& take_share(const Batch& batch, Replica& replica, const InputShard& shard,
                        bool is_local) {
  if (shard.count == 1 && !is_local) return batch;
  if (shard.count == 1) {
    replica.share = batch;
  } else {
    const auto samples = batch.loss_divisor;  // samples of the whole step
    const BatchShare share = share_of_replica(samples, shard.first + replica.index, shard.total);
    const std::int64_t first = share_of_replica(samples, shard.first, shard.total).begin;
    replica.share = batch.rows(share.begin - first, share.end - first);
    if (replica.index == 0) replica.share.num_bad = batch.num_bad;  // one replica for the task
  }
  if (is_local) {
    replica.share.loss_divisor = std::max<std::int64_t>(replica.share.num_samples, 1);
  }
  return replica.share;
}

// Returns the report of a task from the own reports of its replicas. Each replica has divided its
// loss by its own samples.
StepReport join_own_reports(std::span<const StepReport> reports) {
  StepReport total = reports.front();
  for (const StepReport& report : reports.subspan(1)) total += report;
  total.scores.loss = 0.0;
  for (const StepReport& report : reports) {
    total.scores.loss += report.scores.loss * static_cast<double>(report.scores.num_samples) /
                         static_cast<double>(std::max<std::int64_t>(total.scores.num_samples, 1));
  }
  return total;
}

void start_forward(Replica& replica, const Batch& batch, const ValuesHook& before_use) {
  const Span span(replica.passes_trace, TraceKind::kForward);
  replica.model->start_forward(batch, before_use);
}

}  // namespace

std::optional<StepProfile> profile_of(const Graph& graph, const Replica& replica) {
  if (replica.backend->device().kind != DeviceKind::kCpu) return std::nullopt;
  return StepProfile(graph, replica.arena->layout(), replica.arena->buckets(),
                     replica.micro_batches);
}

StepReport replica_step(Replica& replica, const Batch& batch, const UpdateStep& step,
                        const ps::StopCounts& stops, StepDelays* delays) {
  VariableStore& variables = *replica.variables;
  Model& model = *replica.model;
  variables.pull(step);
  ValuesHook before_use = [&](BucketId bucket) {
    if (delays != nullptr) delays->before_use(bucket);
    variables.wait_values(bucket);
  };
  StepReport report{.scores = {.num_bad = batch.num_bad}};
  if (replica.index == 0) report.stops = stops;  // one replica reports a task's stop requests
  replica.samples_in_statistics += batch.num_samples;
  const int last = replica.micro_batches - 1;
  for (int part = 0; part < last; ++part) {
    const BatchShare share = share_of_replica(batch.num_samples, part, replica.micro_batches);
    start_forward(replica, batch.rows(share.begin, share.end), before_use);
    before_use = [](BucketId) {};  // the values have arrived
    const Span span(replica.passes_trace, TraceKind::kBackward);
    model.accumulate();
    report += StepReport{.scores = model.scores()};
  }
  const BatchShare rest = share_of_replica(batch.num_samples, last, replica.micro_batches);
  start_forward(replica, last == 0 ? batch : batch.rows(rest.begin, rest.end), before_use);
  std::optional<Span> backward(std::in_place, replica.passes_trace, TraceKind::kBackward);
  model.backward([&](BucketId bucket) {
    if (delays != nullptr) delays->before_push(bucket);
    // The scores of the model are read as late as possible: waiting for them earlier would keep a
    // device idle between its forward and backward passes.
    if (bucket == 0) report += StepReport{.scores = model.scores()};
    variables.push(bucket, report);
  });
  backward.reset();
  return variables.commit();
}

StepReport train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step,
                      const ps::StopCounts& stops, std::span<StepDelays> delays) {
  std::optional<Span> waiting(std::in_place, strategy.replicas().front().trace, TraceKind::kInput);
  const Batch& batch = input.next();
  waiting.reset();
  const InputShard shard = strategy.input_shard();
  const bool is_local = strategy.is_local(step);
  std::vector<StepReport> reports(strategy.replicas().size());
  strategy.for_each_replica([&](Replica& replica) {
    const Span span(replica.trace, TraceKind::kStep, step.step);
    const auto index = static_cast<std::size_t>(replica.index);
    StepDelays* const delay = delays.empty() ? nullptr : &delays[index];
    if (delay != nullptr) delay->begin(step.step);
    reports[index] =
        replica_step(replica, take_share(batch, replica, shard, is_local), step, stops, delay);
  });
  return reports.front().round_steps > 0 ? reports.front() : join_own_reports(reports);
}

}  // namespace syncopate
