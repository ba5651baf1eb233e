// All values of a replica in one block and all gradients in another, so that a bucket is a slice,
// an update is one sweep and a strategy need not know the network. Parameters stand in forward
// order, each on a 256-byte boundary; the padding between them stays zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// What the arena has to know of one parameter.
struct ArenaEntry {
  std::string name;
  Shape shape;
  bool decays = true;  // weight decay applies
};

// A bucket: elements [begin, end) of the arena. Bucket 0 holds the last layers (backward order).
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Bucket&) const = default;
};
using BucketId = int;

// Where each parameter stands: the same on every replica, worker and shard.
class ArenaLayout {
 public:
  ArenaLayout() = default;
  explicit ArenaLayout(std::vector<ArenaEntry> entries);

  const std::vector<ArenaEntry>& entries() const noexcept { return entries_; }
  // First element of entry i.
  std::int64_t offset(std::size_t i) const { return offsets_.at(i); }
  std::int64_t size(std::size_t i) const { return num_elements(entries_.at(i).shape); }
  // Elements of the whole block, padding included.
  std::int64_t total() const noexcept { return total_; }

 private:
  std::vector<ArenaEntry> entries_;
  std::vector<std::int64_t> offsets_;
  std::int64_t total_ = 0;
};

// Cuts the arena into buckets of at least `bucket_bytes` (the last one may be smaller), at
// parameter borders, from the last parameter to the first. A pure function of its arguments.
std::vector<Bucket> plan_buckets(const ArenaLayout& layout, std::int64_t bucket_bytes);

// Not thread-safe: whoever writes a bucket's values (update, pull, restore) has it alone meanwhile.
class ParameterArena {
 public:
  // `buckets` as from plan_buckets. Zeroed host memory of its own, but for what is given: a store
  // may keep values or gradients where it shares them. Throws ShapeError unless [total] f32.
  ParameterArena(ArenaLayout layout, std::vector<Bucket> buckets, const Tensor* values = nullptr,
                 const Tensor* gradients = nullptr);

  const ArenaLayout& layout() const noexcept { return layout_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }

  const Tensor& values() const noexcept { return values_; }        // [total] f32
  const Tensor& gradients() const noexcept { return gradients_; }  // [total] f32
  Tensor value(std::size_t i) const { return window(values_, i); }
  Tensor gradient(std::size_t i) const { return window(gradients_, i); }

  // Counts the writes of a bucket's values; working copies (packed weights) older than this are
  // stale. Starts at 1.
  std::uint64_t version(BucketId bucket) const {
    return versions_.at(static_cast<std::size_t>(bucket));
  }
  void bump_version(BucketId bucket) { ++versions_.at(static_cast<std::size_t>(bucket)); }
  void bump_all_versions();

 private:
  Tensor window(const Tensor& block, std::size_t i) const;

  ArenaLayout layout_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> versions_;
  Tensor values_;
  Tensor gradients_;
};

// What a model remembers between steps and does not train: batch norm's running statistics.
// [total] f32, laid out as parameters are.
struct StateBlock {
  explicit StateBlock(ArenaLayout layout);

  Tensor value(std::size_t i) const;

  ArenaLayout layout;
  Tensor values;
};

}  // namespace syncopate
