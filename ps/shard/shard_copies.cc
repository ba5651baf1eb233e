// Shard: cuts, checkpoints and restores.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/shard/shard.h"
#include "ps/shard/shard_variable.h"

namespace syncopate::ps {
namespace {

Tensor copy_of(const Tensor& tensor) {
  Tensor copy = make_host_tensor(tensor.shape(), DType::kF32);
  std::ranges::copy(tensor.f32(), copy.f32().begin());
  return copy;
}

void copy_all(const Tensor& from, const Tensor& to) {
  if (from.bytes().data() != to.bytes().data()) std::ranges::copy(from.f32(), to.f32().begin());
}

}  // namespace

std::vector<CutEntry> Shard::freeze(std::uint64_t cut) {
  check(cut > 0, "cuts are counted from 1");
  std::map<WorkerId, CutEntry> furthest;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.hold(cut);
    for (const CutEntry& entry : variable->shared.clocks()) {
      CutEntry& most = furthest.try_emplace(entry.worker, entry).first->second;
      const bool is_further = entry.incarnation != most.incarnation
                                  ? entry.incarnation > most.incarnation
                                  : entry.sequence > most.sequence;
      if (is_further) most = entry;
    }
  }
  std::vector<CutEntry> entries;
  for (const auto& [worker, entry] : furthest) entries.push_back(entry);
  // What has begun elsewhere on this shard is in the cut, so it need not wait for cut().
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.limit(entries);
  }
  return entries;
}

void Shard::cut(std::uint64_t cut, std::span<const CutEntry> entries,
                std::shared_ptr<ShardState> copy) {
  check_tensors(*copy, true);
  copy->buckets.resize(variables_.size());
  const CutOrder order{.number = cut, .copy = std::move(copy)};
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.cut(entries, order);
  }
}

void Shard::thaw() {
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.thaw();
  }
}

void Shard::check_tensors(const ShardState& state, bool may_lack_slots) const {
  const auto elements = values_.f32().size();
  const auto check_one = [&](const Tensor& tensor, const std::string& what) {
    if (tensor.num_elements() == 0 || tensor.f32().size() != elements) {
      throw ShapeError("shard's copy: " + what + " of " + std::to_string(tensor.num_elements()) +
                       " elements, expected " + std::to_string(elements));
    }
  };
  check_one(state.values, "values");
  if (state.slots.empty() && may_lack_slots) return;
  if (state.slots.size() != slots_.size()) {
    throw ShapeError("shard's copy: " + std::to_string(state.slots.size()) +
                     " slots, expected the optimizer's " + std::to_string(slots_.size()));
  }
  for (const Tensor& slot : state.slots) check_one(slot, "a slot");
}

ShardState Shard::state() const {
  ShardState state{.values = copy_of(values_)};
  for (const Tensor& slot : slots_) state.slots.push_back(copy_of(slot));
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    check(!variable->shared.is_at_work(), "a shard at work has no state");
    state.buckets.push_back({variable->shared.version(), variable->shared.clocks()});
  }
  return state;
}

void Shard::restore(const ShardState& state) {
  check_tensors(state, false);
  if (state.buckets.size() != variables_.size()) {
    throw ShapeError("shard's copy: " + std::to_string(state.buckets.size()) +
                     " buckets, expected " + std::to_string(variables_.size()));
  }
  copy_all(state.values, values_);
  for (std::size_t s = 0; s < slots_.size(); ++s) copy_all(state.slots[s], slots_[s]);
  for (std::size_t b = 0; b < variables_.size(); ++b) {
    const std::lock_guard lock(variables_[b]->mutex);
    variables_[b]->shared.restore(state.buckets[b]);
  }
}

bool Shard::write(BucketId bucket, std::uint64_t version,
                  std::span<const std::span<const std::byte>> values_and_slots) {
  Variable& to = at(bucket);
  const std::size_t tensors = values_and_slots.size();
  if (tensors != 1 && tensors != 1 + slots_.size()) {
    throw ShapeError("write of bucket " + std::to_string(bucket) + ": " + std::to_string(tensors) +
                     " blocks, expected values alone or with " + std::to_string(slots_.size()) +
                     " slots");
  }
  const std::size_t bytes = static_cast<std::size_t>(to.elements()) * sizeof(float);
  for (const std::span<const std::byte> block : values_and_slots) {
    if (block.size() == bytes) continue;
    throw ShapeError("write of bucket " + std::to_string(bucket) + ": " +
                     std::to_string(block.size()) + " bytes, expected " + std::to_string(bytes));
  }
  const auto copy = [&](std::span<const std::byte> block, const Tensor& tensor) {
    std::memcpy(tensor.f32().data() + to.position, block.data(), bytes);
  };
  // Under the lock, so that no work begins meanwhile; nobody trains yet who could wait for it.
  const std::lock_guard lock(to.mutex);
  if (!to.shared.rewrite(version)) return false;
  copy(values_and_slots[0], values_);
  for (std::size_t s = 1; s < tensors; ++s) copy(values_and_slots[s], slots_[s - 1]);
  return true;
}

Shard::Window Shard::window(BucketId bucket) const {
  const Variable& of = at(bucket);
  return {of.position, of.elements()};
}

}  // namespace syncopate::ps
