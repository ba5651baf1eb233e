// Runs our own side of `syncopate-bench ps`, with one process per worker and server as in a
// training job. Rank 0 is a worker and starts the other ranks. Ranks below `workers` are workers,
// the others are servers.
#pragma once

#include <string_view>
#include <vector>

#include "bench/ps/ps_job.h"

namespace syncopate::bench {

struct PsRankOptions {
  int rank = 0;
  PsJobOptions job;
};

// Serves commands until the input ends. The answer to `run ...` (ps_peers/exchange.h) has the
// seconds of each exchange of worker 0, then those of worker 1, and so on. The answer to `idle
// SECONDS` has the CPU seconds that each server of an idle job used in that time. Values are
// checked after every run. Throws PeerError, UsageError.
void run_ps_rank(const PsRankOptions& options);

// The subcommand that runs run_ps_rank(), and its arguments.
inline constexpr std::string_view kPsRank = "ps-rank";
std::vector<std::string> ps_rank_arguments(const PsJobOptions& job);

}  // namespace syncopate::bench
