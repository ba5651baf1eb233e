// The consistency rule `sync` for one bucket: an update is due when every worker's gradient of the
// current values is there. It decides and remembers; whoever owns it locks, sums and updates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/tensor/parameter_arena.h"

namespace syncopate {

// One thread at a time.
class SyncRule {
 public:
  // `bucket` names itself in messages.
  SyncRule(BucketId bucket, int workers);

  // The number of writes of the values, from 1.
  std::uint64_t version() const noexcept { return version_; }
  bool due() const noexcept { return arrived_ == static_cast<int>(gradients_.size()); }
  // By worker; those of an update that is due are all there.
  std::span<const std::span<const float>> gradients() const noexcept { return gradients_; }

  // Keeps the worker's window until the version moves on. Returns true when the update is due now.
  // Throws InternalError, and then has changed nothing, for an unknown worker, its second push of
  // this version, and a gradient of values other than the current ones.
  bool push(int worker, std::uint64_t version, std::span<const float> gradient);

  // The values have been written: the next version's gradients are awaited.
  void advance() noexcept;

 private:
  BucketId bucket_;
  std::uint64_t version_ = 1;
  int arrived_ = 0;
  std::vector<std::span<const float>> gradients_;  // null until it has come
};

}  // namespace syncopate
