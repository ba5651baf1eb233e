// The parameter arena: all values of a replica in one block and all gradients in another. With an
// arena, a bucket is a slice, an update is one loop, and a strategy needs no knowledge of the
// network. Parameters are stored in forward order, each on a 256-byte boundary; the padding stays
// zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// The properties of a parameter that the arena uses.
struct ArenaEntry {
  std::string name;
  Shape shape;
  bool decays = true;  // weight decay applies to this parameter
};

// A bucket: elements [begin, end) of the arena. Buckets are numbered in backward order: bucket 0
// holds the last layers.
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Bucket&) const = default;
};
using BucketId = int;

// The layout of the arena: each parameter's offset, identical on every replica, worker and shard.
class ArenaLayout {
 public:
  ArenaLayout() = default;
  explicit ArenaLayout(std::vector<ArenaEntry> entries);

  const std::vector<ArenaEntry>& entries() const noexcept { return entries_; }
  // Returns the offset in the arena of parameter i, in elements.
  std::int64_t offset(std::size_t i) const { return offsets_.at(i); }
  std::int64_t size(std::size_t i) const { return num_elements(entries_.at(i).shape); }
  // Returns the number of elements of the whole arena, including padding.
  std::int64_t total() const noexcept { return total_; }

 private:
  std::vector<ArenaEntry> entries_;
  std::vector<std::int64_t> offsets_;
  std::int64_t total_ = 0;
};

// Divides the arena into buckets of at least `bucket_bytes` bytes; the last bucket may be smaller.
// Goes from the last parameter to the first, and puts each parameter into one bucket. A pure
// function of its arguments.
std::vector<Bucket> plan_buckets(const ArenaLayout& layout, std::int64_t bucket_bytes);

// Values and gradients of all parameters of a replica. Not thread-safe: while a thread writes a
// bucket's values (update, pull, restore), no other thread may access that bucket.
class ParameterArena {
 public:
  // Makes an arena with this layout. buckets: the result of plan_buckets(). values, gradients: the
  // memory of the arena, if a store shares the memory with other replicas or processes; if null,
  // zeroed host memory is allocated. Throws ShapeError unless a given tensor is [total] f32.
  ParameterArena(ArenaLayout layout, std::vector<Bucket> buckets, const Tensor* values = nullptr,
                 const Tensor* gradients = nullptr);

  const ArenaLayout& layout() const noexcept { return layout_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }

  const Tensor& values() const noexcept { return values_; }        // [total] f32, all parameters
  const Tensor& gradients() const noexcept { return gradients_; }  // [total] f32, all parameters
  Tensor value(std::size_t i) const { return window(values_, i); }
  Tensor gradient(std::size_t i) const { return window(gradients_, i); }

  // Returns the version of a bucket's values, which starts at 1 and increases with every write. A
  // copy of the values (such as packed weights) that was made at a lower version is outdated.
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

// State that a model keeps between steps but does not train: the running statistics of batch norm.
// `values` is [total] f32, with the layout of an arena.
struct StateBlock {
  explicit StateBlock(ArenaLayout layout);

  Tensor value(std::size_t i) const;

  ArenaLayout layout;
  Tensor values;
};

}  // namespace syncopate
