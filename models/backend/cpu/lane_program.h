// The program of one lane: the groups of a graph in order, and one block of memory for their
// values, gradients and scratch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/backend/cpu/group.h"

namespace syncopate {

class LaneProgram {
 public:
  // Makes the groups and allocates their memory. batch_norms: for each group, the sums that lanes
  // exchange for batch norm; null for groups without batch norm. All arguments of the constructor
  // must outlive the program. Throws DeviceError, ShapeError, OutOfMemoryError.
  LaneProgram(const GroupContext& context, const std::vector<FusedGroup>& groups,
              const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms);

  void forward(std::size_t group, LaneStep& step) { groups_[group]->forward(step); }
  void backward(std::size_t group, LaneStep& step);

  // Copies the logits of the lane's samples, [n, classes] or [n, H, W, classes], to `into`. Called
  // after a forward pass. Returns the address after the last copied logit.
  float* copy_logits(float* into) const;

 private:
  class Builder;

  // Adds a second gradient to the gradient of a value that several groups read. The addition runs
  // before the backward pass of the group that computed the value.
  struct GradientSum {
    float* into = nullptr;
    const float* from = nullptr;
    std::int64_t count = 0;
  };

  const CpuKernels& kernels_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::vector<GradientSum>> sums_before_backward_;  // index: the group
  Tensor workspace_;
  const float* logits_ = nullptr;  // the logits of the last forward pass
  ValueType logits_type_;
  const std::int64_t n_;
};

// Chooses the layout of every group's output. Maps are blocked, except samples that the first layer
// reads in another layout.
std::vector<ValueType> choose_layouts(const Graph& graph, const std::vector<FusedGroup>& groups);

}  // namespace syncopate
