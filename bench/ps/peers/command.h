// Declares the hidden command that `syncopate-bench ps` uses to start a raw peer.
#pragma once

#include "bench/harness/commands.h"

namespace syncopate::bench {

// Declares the command named kPsPeerRank (ps_peers.h).
Command declare_ps_peer_rank(FlagSet& flags, const Environment& environment);

}  // namespace syncopate::bench
