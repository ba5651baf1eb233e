// The parameter arena: all values of a replica in one block and all gradients in another. A bucket
// is a slice of the arena, an update is one loop, and a strategy needs no knowledge of the network.
// Parameters are stored in forward order, each on a 256-byte boundary; the padding stays zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// ArenaEntry holds the properties of a parameter that the arena uses.
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

// Divides the arena, between parameters and from the last parameter to the first, into buckets of
// at least `bucket_bytes` bytes (the last bucket may be smaller). A pure function of its arguments.
std::vector<Bucket> plan_buckets(const ArenaLayout& layout, std::int64_t bucket_bytes);

// A ParameterArena is not thread-safe: while a thread writes a bucket's values (update, pull,
// restore), no other thread may access that bucket.
class ParameterArena {
 public:
  // `buckets` come from plan_buckets. A block of the arena that is not given is allocated in host
  // memory and zeroed; a store passes blocks that it shares with other replicas or processes.
  // Throws ShapeError unless a given block is [total] f32.
  ParameterArena(ArenaLayout layout, std::vector<Bucket> buckets, const Tensor* values = nullptr,
                 const Tensor* gradients = nullptr);

  const ArenaLayout& layout() const noexcept { return layout_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }

  const Tensor& values() const noexcept { return values_; }        // [total] f32, all parameters
  const Tensor& gradients() const noexcept { return gradients_; }  // [total] f32, all parameters
  Tensor value(std::size_t i) const { return window(values_, i); }
  Tensor gradient(std::size_t i) const { return window(gradients_, i); }

  // Returns the number of writes of a bucket's values, starting at 1. A working copy (packed
  // weights) that was made at a lower version is outdated.
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

// State that a model keeps between steps and does not train: the running statistics of batch norm.
// [total] f32, with the layout of an arena.
struct StateBlock {
  explicit StateBlock(ArenaLayout layout);

  Tensor value(std::size_t i) const;

  ArenaLayout layout;
  Tensor values;
};

}  // namespace syncopate
