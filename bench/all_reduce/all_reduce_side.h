// Measures one call of an all-reduce library with the inputs, the common start, the clock and the
// check that all sides of `syncopate-bench all-reduce` share. Our side and the peers (bench/peers)
// are both built from this file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/rank_group.h"

namespace syncopate::bench {

// One rank's access to a library's all-reduce. Every rank makes the same calls in the same order.
// One thread only.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // Returns the names of the available algorithms. If there are several, serve_all_reduce chooses
  // the fastest for each size before it measures.
  virtual std::vector<std::string> algorithms() const = 0;
  // Does all setup for a size before its first call, such as allocation. `elements` counts f32.
  virtual void prepare(std::size_t algorithm, std::int64_t elements) = 0;
  virtual std::span<float> input() = 0;         // the tensor to fill, of the prepared size
  virtual void all_reduce() = 0;                // blocks until the sum is complete
  virtual std::span<const float> result() = 0;  // Returns the sum over all ranks.
};

// Rank 0 prints {"event": "ready", ...} with `description`. All ranks then serve the command `run
// BYTES ITERATIONS`. Rank 0 answers {"event": "steps", "seconds": [...], "algorithm": ...}; each
// time is the slowest rank's. The inputs are rewritten before every call and the result is checked
// after the last. Returns at `quit` or at the end of the input. Throws PeerError for a wrong sum or
// a lost rank, UsageError for an unknown command.
void serve_all_reduce(RankGroup& group, Reducer& reducer, std::string_view description);

}  // namespace syncopate::bench
