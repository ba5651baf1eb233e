// Everything a shard must remember to go on: a checkpoint's and a cut's content.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tensor/tensor.h"
#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

// Tensors: [elements of all buckets] f32, as Shard::values(). What the adaptive compensation knows
// of the gradients' mean square is not kept: it is learned anew within some ten updates.
struct ShardState {
  struct Variable {
    std::uint64_t version = 1;
    std::vector<CutEntry> workers;  // that it has heard of
  };
  Tensor values{};
  std::vector<Tensor> slots{};
  std::vector<Variable> buckets{};
};

}  // namespace syncopate::ps
