// The variables of one copy of the network, with the optimizer's slots, as a checkpoint holds them;
// and functions to copy one snapshot to another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/optim/optimizer.h"
#include "models/tensor/tensor.h"

namespace syncopate {

// Values and optimizer slots in host memory, in the order of the parameter arena. The tensors that
// Strategy::snapshot() returns refer to the memory that training uses, so the caller must copy
// them, or write them to a file, before the next step.
struct Snapshot {
  struct Slot {
    std::string name;  // name of the slot, such as "exp_avg"
    Tensor values;     // of the slot, [arena total] f32
  };
  Tensor values;  // of the variables, [arena total] f32
  std::vector<Slot> slots;
  Tensor state;  // [state total] f32: the running statistics
  // The loss scale of replica 0 (fp16); empty if the replicas do not scale their losses or the
  // variables are on servers.
  std::optional<LossScaleState> loss_scale = {};
  // The inner learning rate of the last step, if the outer momentum is scaled by it (outer_rule.h).
  std::optional<float> outer_rate = {};
};

// Return the name of worker `worker`'s own set of a slot, "momentum@3", the name of the common set
// of such a slot, "momentum", and the worker of such a slot. A slot without a worker is its own
// common set.
std::string worker_slot(const std::string& slot, std::size_t worker);
std::string common_slot(const std::string& slot);
std::size_t worker_of_slot(const std::string& slot);

// Returns the optimizer's slots with their names. `tensors` has one tensor per slot name of the
// optimizer.
std::vector<Snapshot::Slot> named_slots(const Optimizer& optimizer,
                                        std::span<const Tensor> tensors);

// Returns the slots' values as spans, in the order of `slots`.
std::vector<std::span<float>> memory_of(std::span<const Snapshot::Slot> slots);

// Returns the slot that is the moving average of the variables. Precondition: there is such a slot.
const Tensor& average_of(std::span<const Snapshot::Slot> slots);

// Returns whether all values, f32, are finite.
bool all_finite(const Tensor& values);

// Throws ShapeError unless `saved` has the blocks, shapes and slot names of `live`.
void check_snapshot(const Snapshot& saved, const Snapshot& live);
// Copies every block of `saved` into the memory of `live`. Precondition: check_snapshot() passed.
void copy_snapshot(const Snapshot& saved, const Snapshot& live);

// Writes the average of all replicas' running statistics to `average`; weights[r] is the weight of
// replica r. `all` has the statistics of replica 0, then of replica 1 and so on, average.size()
// numbers for each. The sum is in replica order, so that the result has the same bits under every
// strategy. Precondition: the sum of weights is not 0.
void average_running_statistics(std::span<const double> weights, std::span<const float> all,
                                std::span<float> average);

// An optimizer and the slots of one copy of the variables, in host memory.
class OptimizerSlots {
 public:
  // `elements` is the number of elements of the arena. Throws the errors of make_optimizer().
  OptimizerSlots(const OptimizerOptions& options, std::int64_t elements)
      : OptimizerSlots(make_optimizer(options), elements) {}
  OptimizerSlots(std::unique_ptr<Optimizer> optimizer, std::int64_t elements);

  const Optimizer& optimizer() const noexcept { return *optimizer_; }
  std::span<const Tensor> tensors() const noexcept { return tensors_; }
  std::vector<Snapshot::Slot> named() const { return named_slots(*optimizer_, tensors_); }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> tensors_;
};

}  // namespace syncopate
