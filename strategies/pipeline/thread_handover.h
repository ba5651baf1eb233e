// The hand-over between two stages that are threads of one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "strategies/pipeline/handover.h"

namespace syncopate {

class ThreadHandover final : public Handover {
 public:
  explicit ThreadHandover(HandoverTensors tensors) : tensors_(std::move(tensors)) {}

  Tensor memory(int micro_batch, std::int64_t samples) const override {
    return tensors_.of(micro_batch).rows(0, samples);
  }
  void begin_step() override { published_.store(0); }
  void send(int /*micro_batch*/, std::int64_t /*samples*/) override {
    published_.fetch_add(1, std::memory_order_release);
    published_.notify_all();
  }
  void give_up() override {
    published_.fetch_or(kGivenUp, std::memory_order_release);
    published_.notify_all();
  }
  // Waits without a deadline, because the sending stage's thread calls send() or, if a stage fails,
  // give_up().
  bool receive(int micro_batch, std::int64_t /*samples*/) override {
    for (;;) {
      const std::uint32_t published = published_.load(std::memory_order_acquire);
      if ((published & kGivenUp) != 0) return false;
      if (published > static_cast<std::uint32_t>(micro_batch)) return true;
      published_.wait(published, std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t kGivenUp = std::uint32_t{1} << 31;

  const HandoverTensors tensors_;
  std::atomic<std::uint32_t> published_{0};
};

}  // namespace syncopate
