#include "tests/strategies/small_training.h"

#include <algorithm>

namespace syncopate::test {
namespace {

Tensor copy_of(const Tensor& block) {
  const Tensor copy = make_host_tensor(block.shape(), DType::kF32);
  std::ranges::copy(block.f32(), copy.f32().begin());
  return copy;
}

}  // namespace

Graph small_network(bool has_batch_norm) {
  GraphBuilder build("small");
  NodeId x = build.input({4, 4, 2}, {.dtype = DType::kF32});
  x = build.conv2d(x, "conv", 3, {.pad = 1});
  if (has_batch_norm) x = build.batch_norm(x, "bn");
  x = build.relu(x);
  return build.finish(build.dense(build.flatten(x), "fc", 5));
}

Batch small_batch(float first, std::int64_t loss_divisor) {
  Batch batch{{make_host_tensor({kBatch, 4, 4, 2}, DType::kF32)},
              make_host_tensor({kBatch}, DType::kI32),
              kBatch,
              loss_divisor};
  float value = first;
  for (float& x : batch.inputs[0].f32()) x = value = value < 1.0F ? value + 0.0625F : -1.0F;
  for (std::size_t i = 0; i < kBatch; ++i) batch.target.i32()[i] = static_cast<std::int32_t>(i);
  return batch;
}

Snapshot copy_of(const Snapshot& live) {
  Snapshot copy{copy_of(live.values), {}, copy_of(live.state)};
  for (const Snapshot::Slot& slot : live.slots) {
    copy.slots.push_back({slot.name, copy_of(slot.values)});
  }
  return copy;
}

bool same_blocks(const Snapshot& a, const Snapshot& b) {
  bool same = std::ranges::equal(a.values.f32(), b.values.f32()) &&
              std::ranges::equal(a.state.f32(), b.state.f32()) && a.slots.size() == b.slots.size();
  for (std::size_t i = 0; same && i < a.slots.size(); ++i) {
    same = a.slots[i].name == b.slots[i].name &&
           std::ranges::equal(a.slots[i].values.f32(), b.slots[i].values.f32());
  }
  return same;
}

}  // namespace syncopate::test
