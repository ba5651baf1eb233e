// The raw peers of `syncopate-bench ps`: what a transport gives to a worker and a server that do
// nothing else. This program is both ends of each, through a subcommand that nobody sees.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ps/peers/contest.h"

namespace syncopate::bench {

// "zmq, zmq-copied, tcp, shm-copied": for messages.
std::string ps_peer_names();

// The sides for these names; none: all of them. program: syncopate-bench; what must be preloaded
// lies beside it, in peers/. Throws UsageError for a name it does not know, UnavailableError when
// what must be preloaded is not there.
std::vector<ExchangeSide> find_ps_peers(const std::vector<std::string>& names,
                                        const std::filesystem::path& program);

// One process of a peer: rank 0 (the worker) is started as its side says and starts rank 1.
struct PsPeerRankOptions {
  int rank = 0;
  std::string transport = "tcp";
};
// Throws PeerError; UsageError as above.
void run_ps_peer_rank(const PsPeerRankOptions& options);

// The subcommand that reaches run_ps_peer_rank(); its options are --transport and --rank.
inline constexpr std::string_view kPsPeerRank = "ps-peer-rank";

}  // namespace syncopate::bench
