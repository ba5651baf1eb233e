// Which part of every global batch a task trains, and which part each of its replicas trains.
#pragma once

#include <algorithm>
#include <cstdint>

namespace syncopate {

// The replicas of one task: first, ..., first + count - 1 out of `total` replicas.
struct InputShard {
  int first = 0;
  int count = 1;
  int total = 1;
  // Whether the task uses the inputs and the targets of its samples. Unused tensors may hold any
  // values.
  bool reads_inputs = true;
  bool reads_targets = true;
};

// A replica's share of a step: the samples [begin, end) of the global batch.
struct BatchShare {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Returns the share of replica `replica` in a global batch of `samples` samples. Each replica gets
// ceil(samples / total) samples until none are left, so the last shares may be short or empty.
// Source: TensorFlow's rule for distributed data sets.
constexpr BatchShare share_of_replica(std::int64_t samples, int replica, int total) noexcept {
  const std::int64_t share = (samples + total - 1) / total;
  return {std::min(replica * share, samples), std::min((replica + 1) * share, samples)};
}

}  // namespace syncopate
