// The command that runs a raw peer of `syncopate-bench ps`, which starts it itself.
#pragma once

#include "bench/harness/commands.h"

namespace syncopate::bench {

// Under the name kPsPeerRank (ps_peers.h).
Command declare_ps_peer_rank(FlagSet& flags, const Environment& environment);

}  // namespace syncopate::bench
