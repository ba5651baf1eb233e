#include "ps/shard/shard_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/optim/optimizer.h"
#include "models/tensor/sums.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/staleness.h"

namespace syncopate::ps {
namespace {

// A chunk fits into the first-level cache together with what an optimizer reads and writes beside
// it: the sum of the gradients is used while it is there and never goes to memory.
constexpr std::int64_t kChunk = 4096;
static_assert(kBlockElements % kChunk == 0, "all elements of a chunk have one order of additions");

std::span<float> part_of(const Tensor& block, std::int64_t begin, std::int64_t count) {
  return block.f32().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

template <typename Element>
std::span<Element> part_of(std::span<Element> of, std::int64_t begin, std::size_t count) {
  return of.empty() ? of : of.subspan(static_cast<std::size_t>(begin), count);
}

// Copies values; source and target may be equal. std::ranges::copy of GCC 12 moves spans one float
// at a time, which took longer than the update.
void copy_values(std::span<const float> from, std::span<float> to) {
  std::memmove(to.data(), from.data(), from.size_bytes());
}

void copy_part(const Tensor& from, const Tensor& to, std::int64_t begin, std::int64_t count) {
  copy_values(part_of(from, begin, count), part_of(to, begin, count));
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy = make_host_tensor(tensor.shape(), DType::kF32);
  copy_values(tensor.f32(), copy.f32());
  return copy;
}

// Sums gradients: sum[i] = sum over workers of weights[worker] * gradients[worker][offset + i];
// element 0 is element `index` of the arena. Without weights, each is 1. The range lies within one
// chunk. `scratch` is as long as `sum`. Returns `sum`, or the gradient itself when there is one
// worker and nothing to decode or to weigh.
std::span<const float> sum_gradients(const SumKernels& kernels,
                                     std::span<const EncodedGradient> gradients,
                                     std::span<const float> weights, std::int64_t offset,
                                     std::int64_t index, std::span<float> sum,
                                     std::span<float> scratch) {
  const std::size_t workers = gradients.size();
  const auto count = static_cast<std::int64_t>(sum.size());
  const auto weighed = [&](std::size_t worker, std::span<float> memory) -> std::span<const float> {
    const std::span<const float> gradient = decode_chunk(gradients[worker], offset, memory);
    if (weights.empty() || weights[worker] == 1.0F) return gradient;
    kernels.scale_f32(memory.data(), gradient.data(), weights[worker], count);
    return memory;
  };
  if (workers == 1) return weighed(0, sum);
  auto worker = static_cast<std::size_t>(first_addend(index, static_cast<int>(workers)));
  const std::span<const float> first = weighed(worker, sum);
  if (first.data() != sum.data()) copy_values(first, sum);
  for (std::size_t added = 1; added < workers; ++added) {
    worker = worker + 1 == workers ? 0 : worker + 1;
    kernels.add_f32(sum.data(), weighed(worker, scratch).data(), count);
  }
  return sum;
}

}  // namespace

ShardMemory::ShardMemory(ArenaLayout layout, std::unique_ptr<Optimizer> optimizer, Tensor values,
                         ValuesFormat format)
    : layout_(std::move(layout)),
      optimizer_(std::move(optimizer)),
      sums_(sum_kernels(detect_isa())),
      format_(format),
      values_(std::move(values)) {
  check(optimizer_->slot_names().size() <= kMaxSlots, "no optimizer has more slots than that");
  for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
    slots_.push_back(make_host_tensor(values_.shape(), DType::kF32));
  }
}

void ShardMemory::run(const BucketTask& task, const Window& window, Bucket range) {
  for (Bucket chunk{range.begin, range.begin}; chunk.begin < range.end; chunk.begin = chunk.end) {
    chunk.end = std::min(range.end, (chunk.begin / kChunk + 1) * kChunk);
    run_on_chunk(task, window, chunk);
  }
}

void ShardMemory::run_on_chunk(const BucketTask& task, const Window& window, Bucket chunk) {
  const std::int64_t offset = chunk.begin - window.range.begin;
  const std::int64_t position = window.position + offset;
  const std::int64_t count = chunk.end - chunk.begin;
  if (task.kind == BucketTask::Kind::kUpdate) update_chunk(task, window, chunk);
  if (task.kind == BucketTask::Kind::kSnapshot) {
    const ShardSnapshot& snapshot = *task.snapshot.target;
    copy_part(values_, snapshot.values, position, count);
    for (std::size_t s = 0; s < snapshot.slots.size(); ++s) {
      copy_part(slots_[s], snapshot.slots[s], position, count);
    }
  }
  const std::span<const float> values = part_of(values_, position, count);
  for (const Destination& to : task.destinations) answer(to, offset, values);
}

void ShardMemory::answer(const Destination& to, std::int64_t offset,
                         std::span<const float> values) const {
  const std::span<float> f32 = part_of(to.values.f32, offset, values.size());
  const std::span<float> read_copy = part_of(to.read_copy, offset, values.size());
  if (format_ == ValuesFormat::kF32) {
    copy_values(values, f32);
    if (!read_copy.empty()) copy_values(values, read_copy);
    return;
  }
  std::array<std::uint16_t, kChunk> scratch;
  std::span<std::uint16_t> words = part_of(to.values.bf16, offset, values.size());
  if (words.empty()) words = std::span(scratch).first(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  sums_.to_bf16(words.data(), values.data(), count);
  if (!f32.empty()) sums_.from_bf16(f32.data(), words.data(), count);
  // The worker computes with the rounded values, and delay compensation is about those.
  if (!read_copy.empty()) sums_.from_bf16(read_copy.data(), words.data(), count);
}

void ShardMemory::update_chunk(const BucketTask& task, const Window& window, Bucket chunk) {
  const std::int64_t offset = chunk.begin - window.range.begin;
  const std::int64_t position = window.position + offset;
  const std::int64_t count = chunk.end - chunk.begin;
  const auto n = static_cast<std::size_t>(count);
  // `sum` and `scratch` are not initialised: both are written before they are read.
  alignas(kAlignmentBytes) std::array<float, kChunk> sum;
  alignas(kAlignmentBytes) std::array<float, kChunk> scratch;
  std::span<const float> gradient =
      sum_gradients(sums_, task.gradients, task.weights, offset, chunk.begin,
                    std::span(sum).first(n), std::span(scratch).first(n));
  const std::span<float> values = part_of(values_, position, count);
  if (task.compensation.is_needed()) {
    DelayCompensation here = task.compensation;
    here.read = part_of(here.read, offset, n);
    here.mean_square = part_of(here.mean_square, offset, n);
    gradient = compensate(here, gradient, values, std::span(sum).first(n));
  }
  std::array<std::span<float>, kMaxSlots> slots;
  for (std::size_t s = 0; s < slots_.size(); ++s) slots[s] = part_of(slots_[s], position, count);
  update_range(*optimizer_, task.step, layout_, chunk, values, gradient,
               std::span(slots).first(slots_.size()));
}

void ShardMemory::check_tensors(const ShardSnapshot& snapshot, bool may_lack_slots) const {
  const auto elements = values_.f32().size();
  const auto check_one = [&](const Tensor& tensor, std::string_view what) {
    if (tensor.num_elements() == 0 || tensor.f32().size() != elements) {
      throw ShapeError(fmt::format("shard's snapshot: {} of {} elements, expected {}", what,
                                   tensor.num_elements(), elements));
    }
  };
  check_one(snapshot.values, "values");
  if (snapshot.slots.empty() && may_lack_slots) return;
  if (snapshot.slots.size() != slots_.size()) {
    throw ShapeError(fmt::format("shard's snapshot: {} slots, expected the optimizer's {}",
                                 snapshot.slots.size(), slots_.size()));
  }
  for (const Tensor& slot : snapshot.slots) check_one(slot, "a slot");
}

ShardSnapshot ShardMemory::copy() const {
  ShardSnapshot snapshot{.values = copy_of(values_)};
  for (const Tensor& slot : slots_) snapshot.slots.push_back(copy_of(slot));
  return snapshot;
}

void ShardMemory::restore(const ShardSnapshot& snapshot) {
  copy_values(snapshot.values.f32(), values_.f32());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    copy_values(snapshot.slots[s].f32(), slots_[s].f32());
  }
}

void ShardMemory::check_blocks(BucketId bucket, const Window& window,
                               std::span<const std::span<const std::byte>> blocks) const {
  if (blocks.size() != 1 && blocks.size() != 1 + slots_.size()) {
    throw ShapeError(
        fmt::format("write of bucket {}: {} blocks, expected values alone or with {} slots", bucket,
                    blocks.size(), slots_.size()));
  }
  const std::size_t bytes = static_cast<std::size_t>(window.elements()) * sizeof(float);
  for (const std::span<const std::byte> block : blocks) {
    if (block.size() == bytes) continue;
    throw ShapeError(
        fmt::format("write of bucket {}: {} bytes, expected {}", bucket, block.size(), bytes));
  }
}

void ShardMemory::write(const Window& window, std::span<const std::span<const std::byte>> blocks) {
  const auto copy = [&](std::span<const std::byte> block, const Tensor& tensor) {
    std::memcpy(tensor.f32().data() + window.position, block.data(), block.size());
  };
  copy(blocks[0], values_);
  for (std::size_t s = 1; s < blocks.size(); ++s) copy(blocks[s], slots_[s - 1]);
}

}  // namespace syncopate::ps
