// A small arena of several parameters and blocks of additions, random gradients for it, and the
// slow, obvious way to update it that a shard must repeat bit for bit.
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

// About 53,000 elements: parameters with and without weight decay, padding between them.
ArenaLayout small_layout();
// Five, one per parameter, from the last; their borders lie inside blocks of additions.
std::vector<Bucket> small_buckets();
// [elements of the layout] f32, also where there is padding: that must not be touched.
Tensor first_values();
// With weight decay. "nesterov" is momentum with Nesterov's rule.
OptimizerOptions decaying(const std::string& name);
UpdateStep update_step(std::int64_t step);

// Of the whole arena; magnitudes from 2^-140 to 1, so that some sums and squares are subnormal.
using Gradient = std::vector<float>;
std::vector<Gradient> random_gradients(int workers, std::int64_t step);

// kSync; workers 0, 1, ... have joined, as incarnation 1.
std::unique_ptr<Shard> make_shard(const OptimizerOptions& options, int workers);

// What a bucket has of a gradient.
std::span<const float> part_of(const Gradient& gradient, Bucket bucket);
// Its worker's push of this version under kSync: nobody is to be answered.
PushRequest sync_push(int worker, BucketId bucket, std::uint64_t version,
                      std::span<const float> gradient, float learning_rate);
EncodedGradient as_f32(std::span<const float> gradient);

// Every worker pushes every bucket, then one thread updates it in pieces of that many elements.
void run_step(Shard& shard, std::span<const Gradient> gradients, const UpdateStep& step,
              std::int64_t piece_elements = Shard::kPieceElements);

// Element by element: the sum in the one order of additions, then one update of each parameter.
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
