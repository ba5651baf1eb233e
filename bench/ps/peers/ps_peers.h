// Runs the raw peers of `syncopate-bench ps`, which show what a transport alone achieves between a
// worker and a server. This program is both ends of each peer, through a hidden subcommand.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/contest.h"

namespace syncopate::bench {

// Returns the peers' names "zmq, zmq-copied, tcp, shm-copied" for messages.
std::string ps_peer_names();

// Returns the peers with these names, or all sides if `names` is empty. `program` is the path of
// syncopate-bench; libraries to preload lie beside it, in peers/. Throws UsageError for an unknown
// name, UnavailableError when a library to preload is missing.
std::vector<ContestSide> find_ps_peers(const std::vector<std::string>& names,
                                       const std::filesystem::path& program);

// Options of one process of a peer. The side's command starts rank 0 (the worker), and rank 0
// starts rank 1 (the server).
struct PsPeerRankOptions {
  int rank = 0;
  std::string transport = "tcp";
};
// Runs one rank of a peer until the input of rank 0 ends. Throws PeerError, and UsageError for an
// unknown transport.
void run_ps_peer_rank(const PsPeerRankOptions& options);

// The subcommand that runs run_ps_peer_rank(); its options are --transport and --rank.
inline constexpr std::string_view kPsPeerRank = "ps-peer-rank";

}  // namespace syncopate::bench
