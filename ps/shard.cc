#include "ps/shard.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/optim/update_range.h"
#include "ps/gradient_sum.h"

namespace syncopate {
namespace {

std::string describe(Bucket bucket) {
  return "[" + std::to_string(bucket.begin) + ", " + std::to_string(bucket.end) + ")";
}

std::span<float> window(const Tensor& block, std::int64_t begin, std::int64_t count) {
  return block.f32().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

}  // namespace

Shard::Shard(ArenaLayout layout, std::vector<Bucket> buckets, int workers,
             std::unique_ptr<Optimizer> optimizer, Tensor values)
    : layout_(std::move(layout)),
      buckets_(std::move(buckets)),
      workers_(workers),
      optimizer_(std::move(optimizer)),
      sums_(sum_kernels(detect_isa())),
      values_(std::move(values)) {
  check(workers >= 1, "a shard has at least one worker");
  check(optimizer_->slot_names().size() <= kMaxSlots, "no optimizer has more slots than that");
  place_variables();
  for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
    slots_.push_back(make_host_tensor(values_.shape(), DType::kF32));
  }
}

void Shard::place_variables() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    variables_.emplace_back(static_cast<BucketId>(b), workers_);
  }
  std::vector<std::size_t> in_arena_order(buckets_.size());
  std::iota(in_arena_order.begin(), in_arena_order.end(), std::size_t{0});
  std::ranges::sort(in_arena_order, {}, [&](std::size_t b) { return buckets_[b].begin; });
  std::int64_t position = 0;
  std::int64_t free_from = 0;
  for (const std::size_t b : in_arena_order) {
    const Bucket bucket = buckets_[b];
    if (bucket.begin < free_from || bucket.end <= bucket.begin || bucket.end > layout_.total()) {
      throw ShapeError("shard: bucket " + std::to_string(b) + " is " + describe(bucket) +
                       ", expected elements of the arena " + describe({0, layout_.total()}) +
                       " that no other bucket has");
    }
    variables_[b].position = position;
    position += bucket.end - bucket.begin;
    free_from = bucket.end;
  }
  if (values_.f32().size() != static_cast<std::size_t>(position)) {
    throw ShapeError("shard: " + std::to_string(values_.num_elements()) +
                     " values, expected as many as its buckets have: " + std::to_string(position));
  }
}

std::size_t Shard::index_of(BucketId bucket) const {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= variables_.size()) {
    throw InternalError("shard: no bucket " + std::to_string(bucket) + ", expected one in [0, " +
                        std::to_string(variables_.size()) + ")");
  }
  return static_cast<std::size_t>(bucket);
}

std::int64_t Shard::size(BucketId bucket) const {
  const Bucket range = buckets_[static_cast<std::size_t>(bucket)];
  return range.end - range.begin;
}

Shard::Reading Shard::read(BucketId bucket) const {
  const Variable& of = variables_[index_of(bucket)];
  const std::lock_guard lock(of.mutex);
  return {window(values_, of.position, size(bucket)), of.rule.version()};
}

bool Shard::push(int worker, BucketId bucket, std::uint64_t version,
                 std::span<const float> gradient) {
  Variable& to = variables_[index_of(bucket)];
  if (gradient.size() != static_cast<std::size_t>(size(bucket))) {
    throw ShapeError("push of bucket " + std::to_string(bucket) + " by worker " +
                     std::to_string(worker) + ": a gradient of " + std::to_string(gradient.size()) +
                     " elements, expected " + std::to_string(size(bucket)));
  }
  const std::lock_guard lock(to.mutex);
  return to.rule.push(worker, version, gradient);
}

std::optional<Shard::Piece> Shard::claim(BucketId bucket, std::uint64_t version,
                                         std::int64_t most_elements) {
  check(most_elements >= 1, "a piece has elements");
  Variable& of = variables_[index_of(bucket)];
  const std::lock_guard lock(of.mutex);
  const std::int64_t left = size(bucket) - of.claimed;
  if (of.rule.version() != version || !of.rule.due() || left == 0) return std::nullopt;
  const std::int64_t begin = buckets_[static_cast<std::size_t>(bucket)].begin + of.claimed;
  const std::int64_t count = std::min(left, most_elements);
  of.claimed += count;
  return Piece{bucket, version, {begin, begin + count}};
}

bool Shard::update(const Piece& piece, const UpdateStep& step) {
  Variable& of = variables_[index_of(piece.bucket)];
  const Bucket bucket = buckets_[static_cast<std::size_t>(piece.bucket)];
  const Bucket range = piece.range;
  {
    const std::lock_guard lock(of.mutex);
    const bool under_way = of.rule.due() && of.rule.version() == piece.version &&
                           range.begin >= bucket.begin && range.begin < range.end &&
                           range.end <= bucket.begin + of.claimed;
    if (!under_way) {
      throw InternalError("update of elements " + describe(range) + " of bucket " +
                          std::to_string(piece.bucket) + " from version " +
                          std::to_string(piece.version) +
                          ": expected a piece that claim() gave and that is not done");
    }
  }
  for (Bucket chunk{range.begin, range.begin}; chunk.begin < range.end; chunk.begin = chunk.end) {
    chunk.end = std::min(range.end, (chunk.begin / kSumChunk + 1) * kSumChunk);
    update_chunk(of, bucket, chunk, step);
  }
  const std::lock_guard lock(of.mutex);
  of.updated += range.end - range.begin;
  if (of.updated != bucket.end - bucket.begin) return false;
  of.claimed = 0;
  of.updated = 0;
  of.rule.advance();
  return true;
}

void Shard::update_chunk(const Variable& variable, Bucket bucket, Bucket chunk,
                         const UpdateStep& step) {
  const std::int64_t offset = chunk.begin - bucket.begin;
  const std::int64_t count = chunk.end - chunk.begin;
  alignas(kAlignmentBytes) std::array<float, kSumChunk> sum;  // written before it is read
  const std::span<const float> gradient =
      sum_gradients(sums_, variable.rule.gradients(), offset, chunk.begin,
                    std::span(sum).first(static_cast<std::size_t>(count)));
  const std::int64_t position = variable.position + offset;
  std::array<std::span<float>, kMaxSlots> slots;
  for (std::size_t s = 0; s < slots_.size(); ++s) slots[s] = window(slots_[s], position, count);
  update_range(*optimizer_, step, layout_, chunk, window(values_, position, count), gradient,
               std::span(slots).first(slots_.size()));
}

void Shard::restart() {
  for (Variable& variable : variables_) {
    const std::lock_guard lock(variable.mutex);
    variable.claimed = 0;
    variable.updated = 0;
    variable.rule.advance();
  }
}

}  // namespace syncopate
