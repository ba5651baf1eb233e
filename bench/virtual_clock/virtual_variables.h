// The variables of a synchronous virtual job, and how the gradients of its workers change them. The
// device has the values of the job at the beginning and at the end of each round. A job that sums
// gradients in every step has rounds of one step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/virtual_clock/virtual_workers.h"
#include "strategies/variable_store.h"

namespace syncopate::bench {

class VirtualVariables {
 public:
  virtual ~VirtualVariables() = default;
  // Computes the gradients of all workers for a step. batch: of all workers together. Returns the
  // mean loss of its samples.
  virtual double train(const Batch& batch, const UpdateStep& step) = 0;
  // Ends the round. Returns the sums over its steps and all workers, as VariableStore::commit()
  // does. The loss is not finite if a value of the update is not finite.
  virtual StepReport end_round() = 0;
  // Returns the bytes of each bucket that a worker sends at the end of a round. Empty if the bytes
  // do not depend on the values.
  virtual std::vector<std::int64_t> sent_bytes() const { return {}; }
  // Returns the values and the slots of the job.
  virtual std::vector<Tensor> tensors() const = 0;
};

// Returns variables in a shard, which sums the gradients of all workers in every step. `plan` and
// `workers` must outlive the object, here and below.
std::unique_ptr<VirtualVariables> make_summed_variables(const Graph& graph, const VirtualPlan& plan,
                                                        VirtualWorkers& workers);
// Returns variables of workers that train in rounds: each worker updates its own values. Before the
// first round, the workers may sum their gradients in every step. Made of the functions of
// --strategy local-sgd, so that its weights are bit-equal to the weights of a real job.
std::unique_ptr<VirtualVariables> make_local_variables(const Graph& graph, const VirtualPlan& plan,
                                                       VirtualWorkers& workers);

}  // namespace syncopate::bench
