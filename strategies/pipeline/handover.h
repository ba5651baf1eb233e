// The tensors that one stage of a pipeline hands to its neighbour, one for each micro-batch of a
// step, and the number of those that are complete.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// One thread fills the tensors in order and calls publish(); another one calls wait_for().
class Handover {
 public:
  // shape: of one sample; `samples`: the most samples of a micro-batch.
  Handover(const Shape& shape, int micro_batches, std::int64_t samples) {
    Shape all = shape;
    all.insert(all.begin(), samples);
    for (int m = 0; m < micro_batches; ++m) tensors_.push_back(make_host_tensor(all, DType::kF32));
  }

  // Returns the samples of a micro-batch.
  Tensor of(int micro_batch, std::int64_t samples) const {
    return tensors_[static_cast<std::size_t>(micro_batch)].rows(0, samples);
  }

  // Starts a step. Called while no other thread uses the object.
  void reset() { published_.store(0); }
  // Micro-batch published + 1 is complete.
  void publish() {
    published_.fetch_add(1, std::memory_order_release);
    published_.notify_all();
  }
  // Ends every wait of the step, because a stage has failed.
  void give_up() {
    published_.fetch_or(kGivenUp, std::memory_order_release);
    published_.notify_all();
  }
  // Waits until this micro-batch is complete. Returns false if a stage has failed. The wait has no
  // deadline: the other thread computes, or calls give_up().
  bool wait_for(int micro_batch) const {
    for (;;) {
      const std::uint32_t published = published_.load(std::memory_order_acquire);
      if ((published & kGivenUp) != 0) return false;
      if (published > static_cast<std::uint32_t>(micro_batch)) return true;
      published_.wait(published, std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t kGivenUp = std::uint32_t{1} << 31;

  std::vector<Tensor> tensors_;
  std::atomic<std::uint32_t> published_{0};
};

}  // namespace syncopate
