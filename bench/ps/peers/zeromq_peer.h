// The peer of `syncopate-bench ps`: raw ZeroMQ, which shows the speed of the transport alone
// between a worker and a server. syncopate-bench itself runs both ends, by a hidden subcommand.
#pragma once

#include <filesystem>
#include <string_view>

#include "bench/harness/contest.h"

namespace syncopate::bench {

inline constexpr std::string_view kZeroMqPeer = "zmq";

// Returns raw ZeroMQ as one side of a contest. program: the path of syncopate-bench. Throws what
// reno_shim() throws.
ContestSide zeromq_side(const std::filesystem::path& program);

// Runs one process of the peer until the input of rank 0 ends. Rank 0 is the worker and starts rank
// 1, which is the server. Throws PeerError, and FileError naming a call of ZeroMQ that failed.
void run_ps_peer_rank(int rank);

// The hidden subcommand that calls run_ps_peer_rank(). Its option is --rank.
inline constexpr std::string_view kPsPeerRank = "ps-peer-rank";

}  // namespace syncopate::bench
