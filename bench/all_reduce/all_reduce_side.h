// What every side of `syncopate-bench all-reduce` has in common: the same inputs, the same start
// together, the same clock and the same check, around one call of the library that is measured.
// The peers (bench/peers) are built from this as well as our own side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/rank_group.h"

namespace syncopate::bench {

// One rank's end of a library's all-reduce. Every rank makes the same calls. One thread only.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // Ways to do it; where there are several, the quickest is chosen for each size before it is
  // measured.
  virtual std::vector<std::string> algorithms() const = 0;
  // Before the first call at a size: everything that is not the all-reduce itself.
  virtual void prepare(std::size_t algorithm, std::int64_t elements) = 0;
  virtual std::span<float> input() = 0;         // of the prepared size
  virtual void all_reduce() = 0;                // blocking
  virtual std::span<const float> result() = 0;  // the sum over all ranks
};

// Rank 0 says {"event": "ready", ...} with `description`, then all answer `run BYTES ITERATIONS`
// with {"event": "steps", "seconds": [...], "algorithm": ...}: of each call, the time of the
// slowest rank. Inputs are rewritten before every call, the result is checked after the last.
// Returns at `quit` or the end of the input. Throws PeerError for a wrong sum or a rank that is
// lost, UsageError for a command it does not know.
void serve_all_reduce(RankGroup& group, Reducer& reducer, std::string_view description);

}  // namespace syncopate::bench
