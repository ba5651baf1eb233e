// A Program is a graph lowered for one device and one number of samples. It holds the groups in
// order, and one block of device memory for their values, gradients and scratch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/backend/cuda/captured_work.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {

// A graph lowered for one number of samples. Used by one thread only.
class Program {
 public:
  // Makes the groups and allocates their memory on the device. groups: the fused groups of the
  // graph, none of which has FusedGroup::pool.
  // Throws UnavailableError, DeviceError, ShapeError, OutOfMemoryError.
  Program(const GroupContext& given, const std::vector<FusedGroup>& groups);

  std::int64_t samples() const noexcept { return context_.n; }
  void forward(std::size_t group, const Step& step) { groups_[group]->forward(step); }
  void backward(std::size_t group, const Step& step);
  // forward_all() runs the forward pass of all groups in order. backward_segment() runs the
  // backward pass of groups [begin, end) in reverse order. Both launch their work as one CUDA graph
  // if the work is equal in all steps and does not involve the host.
  void forward_all(const Step& step);
  void backward_segment(std::size_t begin, std::size_t end, const Step& step);
  // Returns the device address of the logits of the last forward pass, [n, classes] of the
  // program's precision.
  const void* logits() const noexcept { return logits_; }

 private:
  // Adds a second gradient to the gradient of a value that several groups read. The addition runs
  // before the backward pass of the group that computed the value.
  struct GradientSum {
    void* into = nullptr;
    const void* from = nullptr;
    std::int64_t count = 0;
  };
  void* at(GroupPlacement::Offset offset) const;
  std::vector<void*> at(const std::vector<GroupPlacement::Offset>& offsets) const;

  const GroupContext context_;
  std::vector<std::unique_ptr<Group>> groups_;
  // sums_before_backward_[g]: the additions that run before the backward pass of group g.
  std::vector<std::vector<GradientSum>> sums_before_backward_;
  std::shared_ptr<Buffer> block_;
  const void* logits_ = nullptr;
  // The forward pass and the segments of the backward pass as captured CUDA graphs, and the
  // arguments (captured_) with which they were captured.
  CapturedWork forward_;
  std::vector<CapturedWork> backward_;  // index: `end` of backward_segment()
  Step captured_;
};

}  // namespace syncopate::cuda
