// The subcommand behind the raw peers of `syncopate-bench ps`: not for people.
#pragma once

#include "bench/harness/commands.h"

namespace syncopate::bench {

// Under the name kPsPeerRank (ps_peers.h).
Command declare_ps_peer_rank(CLI::App& app, const Environment& environment);

}  // namespace syncopate::bench
