// A graph compiled for the lanes of one CPU replica. The batch is divided among the lanes, and the
// gradients of all lanes are summed in lane order.
#pragma once

#include <memory>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/cpu/lane_program.h"
#include "models/graph/program_plan.h"

namespace syncopate {

class CpuModel final : public Model {
 public:
  // Compiles `graph` for the lanes. All objects given by reference must outlive the model.
  CpuModel(const OneDnn& onednn, const Graph& graph, ParameterArena& arena, StateBlock& state,
           LanePool& lanes, const CpuKernels& kernels, const CompileOptions& options);

  std::int64_t batch_size() const noexcept override { return options_.batch_size; }
  void start_forward(const Batch& batch, const ValuesHook& before_use) override;
  Scores scores() override;
  void backward(const GradientHook& on_ready) override;
  void accumulate() override;
  Tensor logits() const override;
  void copy_logits(std::span<float> into) const override;
  Tensor input_gradient() const override;

 private:
  // The programs of all lanes (the groups of the graph with their memory) for batches of n samples.
  struct Plan {
    std::int64_t n = 0;
    int active_lanes = 0;  // lanes 0 to active_lanes - 1 have samples
    std::vector<std::int64_t> first_sample;
    std::vector<std::unique_ptr<LaneProgram>> programs;
  };

  Plan& plan_for(std::int64_t n);
  void forward_lane(int lane);
  void backward_lane(int lane);
  void prepare_bucket(BucketId bucket, int lane);
  void complete_bucket(BucketId bucket, int lane);

  const OneDnn& onednn_;
  const Graph& graph_;
  ParameterArena& arena_;
  StateBlock& state_;
  LanePool& lanes_;
  const CpuKernels& kernels_;
  const CompileOptions options_;
  const std::vector<FusedGroup> groups_;
  const BucketSchedule schedule_;
  PackedWeights packed_;
  // The sums that lanes exchange for batch norm, for each fused group; null for groups without
  // batch norm.
  std::vector<std::unique_ptr<BatchNormShared>> batch_norms_;
  // lane_gradients_[l]: the gradients of lane l, [arena total]. Lane 0 has the memory of the arena.
  std::vector<Tensor> lane_gradients_;
  Tensor accumulated_;  // [arena total]: gradients of micro-batches; empty before the first one
  bool has_accumulated_ = false;
  Tensor input_gradient_;  // [batch, ...]; default-constructed if no input is differentiated
  std::vector<std::unique_ptr<Plan>> plans_;  // plans_[0] is the plan of the full batch
  // The arguments of the current forward or backward call. They are members so that starting the
  // lanes allocates nothing.
  Plan* plan_ = nullptr;
  const ValuesHook* before_use_ = nullptr;
  const GradientHook* on_ready_ = nullptr;
  std::vector<LaneStep> steps_;
};

}  // namespace syncopate
