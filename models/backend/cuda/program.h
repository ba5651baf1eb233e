// A Program is a graph lowered for one device and one number of samples: its groups in order, and
// the one block of device memory that holds their values, gradients and scratch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/backend/cuda/captured_work.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {

// A Program is used by one thread only.
class Program {
 public:
  // `groups` are the fused groups of the graph, none with `pool`.
  // Throws UnavailableError, DeviceError, ShapeError, OutOfMemoryError.
  Program(const GroupContext& given, const std::vector<FusedGroup>& groups);

  std::int64_t samples() const noexcept { return context_.n; }
  void forward(std::size_t group, const Step& step) { groups_[group]->forward(step); }
  void backward(std::size_t group, const Step& step);
  // forward_all() runs all groups in order; backward_segment() runs groups [begin, end) in reverse.
  // Each starts as one CUDA graph if all steps are equal and the host takes no part within it.
  void forward_all(const Step& step);
  void backward_segment(std::size_t begin, std::size_t end, const Step& step);
  // The logits after a forward pass: a device address, [n, classes] of the program's precision.
  const void* logits() const noexcept { return logits_; }

 private:
  // A GradientSum adds gradients that reach one value from several places.
  struct GradientSum {
    void* into = nullptr;
    const void* from = nullptr;
    std::int64_t count = 0;
  };
  void* at(GroupPlacement::Offset offset) const;
  std::vector<void*> at(const std::vector<GroupPlacement::Offset>& offsets) const;

  const GroupContext context_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::vector<GradientSum>> sums_before_backward_;  // run before each group's backward
  std::shared_ptr<Buffer> block_;
  const void* logits_ = nullptr;
  // The passes captured as CUDA graphs, with the arguments they were captured with.
  CapturedWork forward_;
  std::vector<CapturedWork> backward_;  // by backward_segment()'s `end`
  Step captured_;
};

}  // namespace syncopate::cuda
