// Runs a job of this program as a side of `syncopate-bench ps`, with one process per worker and
// server as in a training job. Rank 0 is a worker and starts the other ranks. Ranks below
// PsJobOptions::workers are workers; the others are servers.
#pragma once

#include <string_view>
#include <vector>

#include "bench/ps/ps_job.h"

namespace syncopate::bench {

// The hidden subcommand that runs one rank of the job, and the arguments of this subcommand. The
// ranks serve commands until the input of rank 0 ends. The answer to "run ..." (peers/exchange.h)
// has the seconds of each exchange of worker 0, then of worker 1, and so on. The answer to "idle
// SECONDS" has the CPU seconds that each server of an idle job used in this time. Values are
// checked after every run.
inline constexpr std::string_view kPsRank = "ps-rank";
std::vector<std::string> ps_rank_arguments(const PsJobOptions& job);

}  // namespace syncopate::bench
