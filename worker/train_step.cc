#include "worker/train_step.h"

#include "models/base/errors.h"

namespace syncopate {

Scores train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step) {
  const Batch& batch = input.next();
  const std::span<Replica> replicas = strategy.replicas();
  check(replicas.size() == 1, "strategies with several local replicas start one thread for each");
  Replica& replica = replicas.front();
  VariableStore& variables = *replica.variables;
  variables.pull();
  const Scores scores =
      replica.model->forward(batch, [&](BucketId bucket) { variables.wait_values(bucket); });
  replica.model->backward(
      [&](BucketId bucket, const Event& ready) { variables.push(bucket, ready); });
  variables.commit(step);
  return scores;
}

}  // namespace syncopate
