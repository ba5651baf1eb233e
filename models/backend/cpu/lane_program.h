// A graph lowered for one lane: its groups in order, and the one block of memory in which their
// values, gradients and scratch live.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/backend/cpu/groups.h"

namespace syncopate {

class LaneProgram {
 public:
  // `batch_norms`: one for every group, null where the group has no batch norm. All arguments
  // outlive the program. Throws DeviceError, ShapeError, OutOfMemoryError.
  LaneProgram(const GroupContext& context, const std::vector<FusedGroup>& groups,
              const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms);

  void forward(std::size_t group, LaneStep& step) { groups_[group]->forward(step); }
  void backward(std::size_t group, LaneStep& step);

  // [n, classes], after forward.
  std::span<const float> logits() const noexcept { return logits_; }

 private:
  class Builder;

  // Gradients of one value that reach it from several places and are added up before its producer's
  // backward.
  struct GradientSum {
    float* into = nullptr;
    const float* from = nullptr;
    std::int64_t count = 0;
  };

  const CpuKernels& kernels_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::vector<GradientSum>> sums_before_backward_;  // of each group
  Tensor workspace_;
  std::span<const float> logits_;
};

// The layout of every group's output. Maps are blocked, but for samples that a first layer reads
// directly.
std::vector<ValueType> choose_layouts(const Graph& graph, const std::vector<FusedGroup>& groups);

}  // namespace syncopate
