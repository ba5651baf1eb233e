// A graph lowered for one device and one number of samples: its groups in order, and the one block
// of device memory in which their values, gradients and scratch live.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/backend/cuda/captured_work.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {

// One thread only.
class Program {
 public:
  // groups: as matched, without kConvReluPool. Throws UnavailableError, DeviceError, ShapeError,
  // OutOfMemoryError.
  Program(const GroupContext& given, const std::vector<FusedGroup>& groups);

  std::int64_t samples() const noexcept { return context_.n; }
  void forward(std::size_t group, const Step& step) { groups_[group]->forward(step); }
  void backward(std::size_t group, const Step& step);
  // All groups in their order, and those of [begin, end) back, as one where that can be: while
  // steps are equal, nobody has to be asked in between.
  void forward_all(const Step& step);
  void backward_segment(std::size_t begin, std::size_t end, const Step& step);
  // [n, classes] of the program's precision, on the device, after forward.
  const void* logits() const noexcept { return logits_; }

 private:
  // Gradients of one value that reach it from several places.
  struct GradientSum {
    void* into = nullptr;
    const void* from = nullptr;
    std::int64_t count = 0;
  };
  void* at(GroupPlacement::Offset offset) const;
  std::vector<void*> at(const std::vector<GroupPlacement::Offset>& offsets) const;

  const GroupContext context_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::vector<GradientSum>> sums_before_backward_;  // of each group
  std::shared_ptr<Buffer> block_;
  const void* logits_ = nullptr;
  // Together with what they were captured with.
  CapturedWork forward_;
  std::vector<CapturedWork> backward_;  // by the segment's end
  Step captured_;
};

}  // namespace syncopate::cuda
