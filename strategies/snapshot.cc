#include "strategies/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

void check_block(const Tensor& source, const Tensor& target, std::string_view what) {
  if (source.shape() == target.shape()) return;
  throw ShapeError(fmt::format("restore: {} has shape {}, expected {}", what,
                               to_string(source.shape()), to_string(target.shape())));
}

void copy_block(const Tensor& source, const Tensor& target) {
  std::ranges::copy(source.f32(), target.f32().begin());
}

}  // namespace

std::string worker_slot(const std::string& slot, std::size_t worker) {
  return fmt::format("{}@{}", slot, worker);
}

std::string common_slot(const std::string& slot) { return slot.substr(0, slot.find('@')); }

std::size_t worker_of_slot(const std::string& slot) {
  const std::size_t at = slot.find('@');
  check(at != std::string::npos, "the name of a worker's slot");
  return parse_number<std::size_t>(slot.substr(at + 1)).value_or(0);
}

std::vector<Snapshot::Slot> named_slots(const Optimizer& optimizer,
                                        std::span<const Tensor> tensors) {
  const auto names = optimizer.slot_names();
  check(names.size() == tensors.size(), "an optimizer has one tensor per slot name");
  std::vector<Snapshot::Slot> slots;
  for (std::size_t i = 0; i < names.size(); ++i) {
    slots.push_back({std::string(names[i]), tensors[i]});
  }
  return slots;
}

std::vector<std::span<float>> memory_of(std::span<const Snapshot::Slot> slots) {
  std::vector<std::span<float>> memory;
  for (const Snapshot::Slot& slot : slots) memory.push_back(slot.values.f32());
  return memory;
}

const Tensor& average_of(std::span<const Snapshot::Slot> slots) {
  const auto average = std::ranges::find(slots, kAverageSlot, &Snapshot::Slot::name);
  check(average != slots.end(), "the optimizer keeps a moving average");
  return average->values;
}

bool all_finite(const Tensor& values) {
  // A sum of 0 * x tests for NaN: 0 * x is 0 for a finite x and NaN otherwise, so the sum needs no
  // branches and the compiler unrolls it.
  std::array<float, 8> sums{};
  const std::span<const float> elements = values.f32();
  for (std::size_t i = 0; i < elements.size(); ++i) sums[i % sums.size()] += 0.0F * elements[i];
  return std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == 0.0F; });
}

void check_snapshot(const Snapshot& saved, const Snapshot& live) {
  check_block(saved.values, live.values, "values");
  check_block(saved.state, live.state, "state");
  if (saved.slots.size() != live.slots.size()) {
    throw ShapeError(fmt::format("restore: {} optimizer slots, expected {}", saved.slots.size(),
                                 live.slots.size()));
  }
  for (std::size_t i = 0; i < live.slots.size(); ++i) {
    if (saved.slots[i].name != live.slots[i].name) {
      throw ShapeError(fmt::format("restore: optimizer slot {}, expected {}", saved.slots[i].name,
                                   live.slots[i].name));
    }
    check_block(saved.slots[i].values, live.slots[i].values, live.slots[i].name);
  }
}

void copy_snapshot(const Snapshot& saved, const Snapshot& live) {
  copy_block(saved.values, live.values);
  copy_block(saved.state, live.state);
  for (std::size_t i = 0; i < live.slots.size(); ++i) {
    copy_block(saved.slots[i].values, live.slots[i].values);
  }
}

void average_running_statistics(std::span<const double> weights, std::span<const float> all,
                                std::span<float> average) {
  double total = 0.0;
  for (const double weight : weights) total += weight;
  for (std::size_t i = 0; i < average.size(); ++i) {
    double sum = 0.0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      sum += weights[r] * static_cast<double>(all[r * average.size() + i]);
    }
    average[i] = static_cast<float>(sum / total);
  }
}

OptimizerSlots::OptimizerSlots(std::unique_ptr<Optimizer> optimizer, std::int64_t elements)
    : optimizer_(std::move(optimizer)) {
  for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
    tensors_.push_back(make_host_tensor({elements}, DType::kF32));
  }
}

}  // namespace syncopate
