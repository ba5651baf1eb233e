#include "worker/train/train_step.h"

#include <optional>
#include <utility>

namespace syncopate {
namespace {

// Returns the replica's share of the task's batch.
Batch take_slice(const Batch& batch, const Replica& replica, const InputShard& shard) {
  const auto samples = batch.loss_divisor;  // samples of the whole step
  const BatchShare share = share_of_replica(samples, shard.first + replica.index, shard.total);
  const std::int64_t first = share_of_replica(samples, shard.first, shard.total).begin;
  Batch slice = batch.rows(share.begin - first, share.end - first);
  if (replica.index == 0) slice.num_bad = batch.num_bad;  // one replica reports for the task
  return slice;
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
  StepReport total;
  strategy.for_each_replica([&](Replica& replica) {
    const Span span(replica.trace, TraceKind::kStep, step.step);
    StepDelays* const delay =
        delays.empty() ? nullptr : &delays[static_cast<std::size_t>(replica.index)];
    if (delay != nullptr) delay->begin(step.step);
    const StepReport report =
        shard.count == 1
            ? replica_step(replica, batch, step, stops, delay)
            : replica_step(replica, take_slice(batch, replica, shard), step, stops, delay);
    if (replica.index == 0) total = report;
  });
  return total;
}

}  // namespace syncopate
