// Runs the peers of `syncopate-bench ps`: raw transports, which show what those alone achieve
// between a worker and a server, and ps-lite. This program is both ends of each raw transport,
// through a hidden subcommand.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/contest.h"

namespace syncopate::bench {

// Returns the peers' names "zmq, zmq-copied, tcp, shm-copied, ps-lite" for messages.
std::string ps_peer_names();

struct PsPeers {
  std::vector<ContestSide> sides;
  std::vector<std::string> absent;  // one line per peer that is not built and was not requested
};
// Returns the peers with these names, or all if `names` is empty. `program` is the path of
// syncopate-bench; what else a peer needs lies beside it, in peers/. Throws UsageError for an
// unknown name, UnavailableError when a requested peer is not built.
PsPeers find_ps_peers(const std::vector<std::string>& names, const std::filesystem::path& program);

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
