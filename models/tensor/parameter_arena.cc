#include "models/tensor/parameter_arena.h"

#include <fmt/format.h>

#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::int64_t kAlignmentElements = kAlignmentBytes / sizeof(float);

Tensor window_of(const Tensor& block, const ArenaLayout& layout, std::size_t i) {
  const std::int64_t begin = layout.offset(i);
  return block.rows(begin, begin + layout.size(i)).reshaped(layout.entries()[i].shape);
}

// Returns `given` if it is not null, else a new zeroed block of `total` f32 elements. Throws
// ShapeError unless the given block is [total] f32.
Tensor own_or_given(const Tensor* given, std::int64_t total) {
  if (given == nullptr) return make_host_tensor({total}, DType::kF32);
  if (given->shape() != Shape{total} || given->dtype() != DType::kF32) {
    throw ShapeError(fmt::format("arena: a block of {} {} was given; expected [{}] f32",
                                 to_string(given->shape()), name(given->dtype()), total));
  }
  return *given;
}

}  // namespace

ArenaLayout::ArenaLayout(std::vector<ArenaEntry> entries) : entries_(std::move(entries)) {
  for (const ArenaEntry& entry : entries_) {
    offsets_.push_back(total_);
    const std::int64_t size = num_elements(entry.shape);
    total_ += (size + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
  }
}

std::vector<Bucket> plan_buckets(const ArenaLayout& layout, std::int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  std::int64_t end = layout.total();
  for (std::size_t i = layout.entries().size(); i-- > 0;) {
    const std::int64_t begin = layout.offset(i);
    const std::int64_t bytes = (end - begin) * static_cast<std::int64_t>(sizeof(float));
    if (bytes >= bucket_bytes || i == 0) {
      buckets.push_back({begin, end});
      end = begin;
    }
  }
  return buckets;
}

ParameterArena::ParameterArena(ArenaLayout layout, std::vector<Bucket> buckets,
                               const Tensor* values, const Tensor* gradients)
    : layout_(std::move(layout)),
      buckets_(std::move(buckets)),
      versions_(buckets_.size(), 1),
      values_(own_or_given(values, layout_.total())),
      gradients_(own_or_given(gradients, layout_.total())) {}

void ParameterArena::bump_all_versions() {
  for (std::uint64_t& version : versions_) ++version;
}

Tensor ParameterArena::window(const Tensor& block, std::size_t i) const {
  return window_of(block, layout_, i);
}

StateBlock::StateBlock(ArenaLayout layout_of_state)
    : layout(std::move(layout_of_state)), values(make_host_tensor({layout.total()}, DType::kF32)) {}

Tensor StateBlock::value(std::size_t i) const { return window_of(values, layout, i); }

}  // namespace syncopate
