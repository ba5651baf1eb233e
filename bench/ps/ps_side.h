// Our own side of `syncopate-bench ps`: workers and servers as a training job has them, a process
// each. Rank 0 is a worker and starts the others: ranks below `workers` are workers, the rest
// servers.
#pragma once

#include <string_view>
#include <vector>

#include "bench/ps/ps_job.h"

namespace syncopate::bench {

struct PsRankOptions {
  int rank = 0;
  PsJobOptions job;
};

// Answers `run ...` (ps_peers/exchange.h) with the seconds of every worker's exchanges, one worker
// after the other, and `idle SECONDS` with the CPU seconds each server used in that time of a job
// in which nothing happened. Values are checked after every run. Throws PeerError, UsageError.
void run_ps_rank(const PsRankOptions& options);

// The subcommand that reaches it, and its arguments.
inline constexpr std::string_view kPsRank = "ps-rank";
std::vector<std::string> ps_rank_arguments(const PsJobOptions& job);

}  // namespace syncopate::bench
