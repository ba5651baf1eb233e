// Shard: the work itself, a cache-sized chunk at a time.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "models/base/errors.h"
#include "models/optim/update_range.h"
#include "ps/shard/gradient_sum.h"
#include "ps/shard/shard.h"
#include "ps/shard/shard_variable.h"

namespace syncopate::ps {
namespace {

std::span<float> part_of(const Tensor& block, std::int64_t begin, std::int64_t count) {
  return block.f32().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

template <typename Element>
std::span<Element> part_of(std::span<Element> of, std::int64_t begin, std::size_t count) {
  return of.empty() ? of : of.subspan(static_cast<std::size_t>(begin), count);
}

// May be the same memory. std::ranges::copy, as GCC 12 has it, moves spans one float at a time:
// that took longer than the update.
void copy_values(std::span<const float> from, std::span<float> to) {
  std::memmove(to.data(), from.data(), from.size_bytes());
}

void copy_window(const Tensor& from, const Tensor& to, std::int64_t begin, std::int64_t count) {
  copy_values(part_of(from, begin, count), part_of(to, begin, count));
}

}  // namespace

std::optional<Piece> Shard::claim(BucketId bucket, std::int64_t most_elements) {
  check(most_elements >= 1, "a piece has elements");
  Variable& of = at(bucket);
  const std::lock_guard lock(of.mutex);
  const auto part = of.shared.claim(most_elements);
  if (!part) return std::nullopt;
  return Piece{
      bucket, of.shared.task().id, {of.range.begin + part->begin, of.range.begin + part->end}};
}

void Shard::update(const Piece& piece, std::vector<ShardEvent>& events) {
  Variable& of = at(piece.bucket);
  const SharedBucket::Part part{piece.range.begin - of.range.begin,
                                piece.range.end - of.range.begin};
  const BucketTask* task = nullptr;
  {
    const std::lock_guard lock(of.mutex);
    if (!of.shared.is_under_way(piece.task, part)) {
      throw InternalError("update of elements [" + std::to_string(piece.range.begin) + ", " +
                          std::to_string(piece.range.end) + ") of bucket " +
                          std::to_string(piece.bucket) + ", task " + std::to_string(piece.task) +
                          ": expected a piece that claim() gave and that is not done");
    }
    task = &of.shared.task();
  }
  const Bucket range = piece.range;
  for (Bucket chunk{range.begin, range.begin}; chunk.begin < range.end; chunk.begin = chunk.end) {
    chunk.end = std::min(range.end, (chunk.begin / kSumChunk + 1) * kSumChunk);
    work_on_chunk(*task, of, chunk);
  }
  const std::lock_guard lock(of.mutex);
  of.shared.finish(part, events);
}

void Shard::work(BucketId bucket, std::vector<ShardEvent>& events) {
  while (const std::optional<Piece> piece = claim(bucket)) update(*piece, events);
}

void Shard::work_on_chunk(const BucketTask& task, const Variable& variable, Bucket chunk) {
  const std::int64_t offset = chunk.begin - variable.range.begin;
  const std::int64_t position = variable.position + offset;
  const std::int64_t count = chunk.end - chunk.begin;
  if (task.kind == BucketTask::Kind::kUpdate) update_chunk(task, variable, chunk);
  if (task.kind == BucketTask::Kind::kCut) {
    const ShardState& copy = *task.cut.copy;
    copy_window(values_, copy.values, position, count);
    for (std::size_t s = 0; s < copy.slots.size(); ++s) {
      copy_window(slots_[s], copy.slots[s], position, count);
    }
  }
  const std::span<const float> values = part_of(values_, position, count);
  for (const Destination& to : task.destinations) {
    copy_values(values, part_of(to.values, offset, values.size()));
    if (!to.read_copy.empty()) copy_values(values, part_of(to.read_copy, offset, values.size()));
  }
}

void Shard::update_chunk(const BucketTask& task, const Variable& variable, Bucket chunk) {
  const std::int64_t offset = chunk.begin - variable.range.begin;
  const std::int64_t position = variable.position + offset;
  const std::int64_t count = chunk.end - chunk.begin;
  const auto n = static_cast<std::size_t>(count);
  // Written before they are read.
  alignas(kAlignmentBytes) std::array<float, kSumChunk> sum;
  alignas(kAlignmentBytes) std::array<float, kSumChunk> scratch;
  std::span<const float> gradient =
      sum_gradients(sums_, task.gradients, offset, chunk.begin, std::span(sum).first(n),
                    std::span(scratch).first(n));
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

}  // namespace syncopate::ps
