// The workers of a synchronous virtual job. They compute one after the other on one device. Each
// worker has running statistics of its own, and counts its samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/virtual_clock/virtual_device.h"
#include "bench/virtual_clock/virtual_plan.h"

namespace syncopate::bench {

// One thread only.
class VirtualWorkers {
 public:
  // `plan` and `device` must outlive the object.
  VirtualWorkers(const VirtualPlan& plan, VirtualDevice& device);

  int count() const noexcept { return static_cast<int>(states_.size()); }
  VirtualDevice& device() const noexcept { return device_; }
  std::int64_t samples(int worker) const { return samples_[static_cast<std::size_t>(worker)]; }
  // Returns the running statistics of worker 0. After average_statistics(), all workers have these.
  std::span<const float> state() const noexcept { return states_.front(); }

  // Returns the worker's share of the batch of a step.
  Batch share_of(const Batch& whole, int worker) const;
  // Computes with the values of the device. Leaves the gradient of the worker's batch in the
  // device: the sum over its micro-batches, added in the order of a real job.
  Scores train(int worker, const Batch& batch);
  // Gives all workers the mean of their running statistics, weighted by the samples since the last
  // call. Adds in the same order as SynchronousStrategy::average_statistics(), so that the bits are
  // equal.
  void average_statistics();

 private:
  Scores train_parts(const Batch& batch, std::span<float> state);

  VirtualDevice& device_;
  const int micro_batches_;
  // states_, samples_ and samples_in_statistics_ have one element per worker.
  std::vector<std::vector<float>> states_;
  std::vector<std::int64_t> samples_;
  std::vector<std::int64_t> samples_in_statistics_;  // samples since the last averaging
  std::vector<float> sum_;                           // scratch memory of train_parts()
};

}  // namespace syncopate::bench
