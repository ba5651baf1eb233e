// The peer of `syncopate-bench ps`: raw ZeroMQ, which shows what the transport alone achieves
// between a worker and a server. This program is both ends, through a hidden subcommand.
#pragma once

#include <filesystem>
#include <string_view>

#include "bench/harness/contest.h"

namespace syncopate::bench {

inline constexpr std::string_view kZeroMqPeer = "zmq";

// Returns the peer as a side. `program` is the path of syncopate-bench; the library that sets the
// congestion control lies beside it, in peers/. Throws UnavailableError when it is not built.
ContestSide zeromq_side(const std::filesystem::path& program);

// Runs one process of the peer until the input of rank 0 ends: rank 0 is the worker and starts rank
// 1, the server. Throws PeerError.
void run_ps_peer_rank(int rank);

// The subcommand that runs run_ps_peer_rank(); its option is --rank.
inline constexpr std::string_view kPsPeerRank = "ps-peer-rank";

}  // namespace syncopate::bench
