#include "worker/train/train_step.h"

namespace syncopate {
namespace {

// Returns the replica's share of the task's batch.
Batch take_slice(const Batch& batch, const Replica& replica, const InputShard& shard) {
  const auto samples = batch.loss_divisor;  // samples of the whole step
  const BatchShare share = share_of_replica(samples, shard.first + replica.index, shard.total);
  const std::int64_t first = share_of_replica(samples, shard.first, shard.total).begin;
  return batch.rows(share.begin - first, share.end - first);
}

}  // namespace

StepReport replica_step(Replica& replica, const Batch& batch, const UpdateStep& step,
                        const ps::StopCounts& stops) {
  VariableStore& variables = *replica.variables;
  variables.pull(step);
  replica.model->start_forward(batch, [&](BucketId bucket) { variables.wait_values(bucket); });
  replica.samples_in_statistics += batch.num_samples;
  StepReport report;
  if (replica.index == 0) report.stops = stops;  // one replica reports a task's stop requests
  replica.model->backward([&](BucketId bucket) {
    // The scores of the model are read as late as possible: waiting for them earlier would keep a
    // device idle between its forward and backward passes.
    if (bucket == 0) report.scores = replica.model->scores();
    variables.push(bucket, report);
  });
  return variables.commit();
}

StepReport train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step,
                      const ps::StopCounts& stops, std::span<StepDelays> delays) {
  const Batch& batch = input.next();
  const InputShard shard = strategy.input_shard();
  StepReport total;
  strategy.for_each_replica([&](Replica& replica) {
    if (!delays.empty()) delays[static_cast<std::size_t>(replica.index)].spend(step.step);
    const StepReport report =
        shard.count == 1 ? replica_step(replica, batch, step, stops)
                         : replica_step(replica, take_slice(batch, replica, shard), step, stops);
    if (replica.index == 0) total = report;
  });
  return total;
}

}  // namespace syncopate
