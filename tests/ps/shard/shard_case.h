// Provides a small arena of several parameters and blocks of additions, random gradients for it,
// and a slow reference update that a shard must repeat bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"
#include "ps/shard/shard.h"

namespace syncopate::ps {

// Returns a layout of about 53,000 elements: parameters with and without weight decay, with
// padding.
ArenaLayout small_layout();
// Returns five buckets, one per parameter, last parameter first. Their borders lie inside blocks of
// additions.
std::vector<Bucket> small_buckets();
// Returns [elements of the layout] f32 initial values. The padding is not zero, to show that a
// shard never writes it.
Tensor first_values();
// Returns options of an optimizer with weight decay. "nesterov" is momentum with Nesterov's rule.
OptimizerOptions decaying(const std::string& name);
UpdateStep update_step(std::int64_t step);

// Returns a gradient of the whole arena with magnitudes from 2^-140 to 1: some sums and squares are
// subnormal.
using Gradient = std::vector<float>;
std::vector<Gradient> random_gradients(int workers, std::int64_t step);

// Returns a shard under kSync; workers 0, 1, ... have joined as incarnation 1.
std::unique_ptr<Shard> make_shard(const OptimizerOptions& options, int workers,
                                  const ConsistencyOptions& consistency = {});

// Returns the part of a gradient that belongs to a bucket.
std::span<const float> part_of(const Gradient& gradient, Bucket bucket);
// Returns a push under kSync, computed from this version, without memory for an answer.
PushRequest sync_push(int worker, BucketId bucket, std::uint64_t version,
                      std::span<const float> gradient, float learning_rate);
EncodedGradient as_f32(std::span<const float> gradient);

// Pushes every bucket from every worker; then one thread updates the bucket in pieces of `piece`
// elements.
void run_step(Shard& shard, std::span<const Gradient> gradients, const UpdateStep& step,
              std::int64_t piece_elements = Shard::kPieceElements);

// The Reference sums element by element in the order of additions, then updates each parameter.
class Reference {
 public:
  explicit Reference(const OptimizerOptions& options);
  void run_step(std::span<const Gradient> gradients, const UpdateStep& step);

  const Tensor& values() const { return values_; }
  std::span<const Tensor> slots() const { return slots_; }

 private:
  ArenaLayout layout_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor values_;
  std::vector<Tensor> slots_;
};

bool same_bits(const Tensor& a, const Tensor& b);
bool same_bits(std::span<const Tensor> a, std::span<const Tensor> b);

}  // namespace syncopate::ps
