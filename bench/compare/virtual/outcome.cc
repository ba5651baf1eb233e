#include "bench/compare/virtual/outcome.h"

#include "worker/train/divergence.h"

namespace syncopate::bench {

void require_finite(const ps::Shard& shard, std::int64_t step, double learning_rate) {
  Snapshot live{.values = shard.values(), .slots = {}, .state = {}};
  for (const Tensor& slot : shard.slots()) live.slots.push_back({"", slot});
  live.state = make_host_tensor({0}, DType::kF32);
  if (all_finite(live)) return;
  throw diverged("the weights or the optimizer's slots are no longer finite",
                 {.step = step, .learning_rate = learning_rate});
}

}  // namespace syncopate::bench
