// A graph on the lanes of one CPU replica: the batch is split over the lanes, gradients are summed
// in lane order.
#pragma once

#include <memory>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/cpu/lane_program.h"
#include "models/graph/program_plan.h"

namespace syncopate {

class CpuModel final : public Model {
 public:
  // All references must outlive the model.
  CpuModel(const OneDnn& onednn, const Graph& graph, ParameterArena& arena, StateBlock& state,
           LanePool& lanes, const CpuKernels& kernels, const CompileOptions& options);

  std::int64_t batch_size() const noexcept override { return options_.batch_size; }
  void start_forward(const Batch& batch, const ValuesHook& before_use) override;
  Scores scores() override;
  void backward(const GradientHook& on_ready) override;
  Tensor logits() const override;

 private:
  // The programs for one number of samples. Training has one plan; evaluation a second for its
  // short tail.
  struct Plan {
    std::int64_t n = 0;
    int active_lanes = 0;  // lanes 0 .. active_lanes - 1 have samples
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
  std::vector<std::unique_ptr<BatchNormShared>>
      batch_norms_;                           // of each group, null where it has none
  std::vector<Tensor> lane_gradients_;        // [arena total] each; lane 0's is the arena's
  std::vector<std::unique_ptr<Plan>> plans_;  // the full batch first
  // The call in progress; members, so that starting the lanes allocates nothing.
  Plan* plan_ = nullptr;
  const ValuesHook* before_use_ = nullptr;
  const GradientHook* on_ready_ = nullptr;
  std::vector<LaneStep> steps_;
};

}  // namespace syncopate
