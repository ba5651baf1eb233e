// Measures the calls of an all-reduce library. This program and the peers (bench/peers) are the
// sides of `syncopate-bench all-reduce`. All sides use this file, so that they get equal inputs and
// are started, timed and checked in the same way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/rank_group.h"

namespace syncopate::bench {

// The all-reduce of a library, for one rank. Every rank makes the same calls in the same order. One
// thread only.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // Returns the names of the library's algorithms. If there are several, serve_all_reduce() finds
  // the fastest for each size before it measures.
  virtual std::vector<std::string> algorithms() const = 0;
  // Prepares all_reduce() for tensors of `elements` f32, for example by allocating memory. Called
  // before the first all_reduce() of a size. algorithm: an index into algorithms().
  virtual void prepare(std::size_t algorithm, std::int64_t elements) = 0;
  virtual std::span<float> input() = 0;         // returns the tensor of the prepared size to fill
  virtual void all_reduce() = 0;                // blocks until the sum is complete
  virtual std::span<const float> result() = 0;  // returns the sum over all ranks
};

// Runs one rank of a side. A side is one of the programs that `syncopate-bench all-reduce`
// compares; every rank of a side is a process. Rank 0 prints {"event": "ready", ...} with
// `description`. Rank 0 then reads commands from standard input and passes each command to the
// other ranks. At the command `run BYTES ITERATIONS`, all ranks measure ITERATIONS calls of
// reducer.all_reduce() with a tensor of BYTES bytes. Rank 0 then prints {"event": "steps",
// "seconds": [...], "algorithm": ...}, where "seconds" has the time of the slowest rank in each
// call. The inputs are rewritten before every call, and the result of the last call is checked.
// Returns at the command `quit` or at the end of standard input. Throws PeerError for a wrong sum
// or a lost rank, and UsageError for an unknown command.
void serve_all_reduce(RankGroup& group, Reducer& reducer, std::string_view description);

}  // namespace syncopate::bench
