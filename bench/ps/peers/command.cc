#include "bench/ps/peers/command.h"

#include <memory>

#include "bench/ps/peers/ps_peers.h"

namespace syncopate::bench {

Command declare_ps_peer_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsPeerRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0, .most = 1});
  flags.add("--transport", &options->transport, "");
  return [options] { run_ps_peer_rank(*options); };
}

}  // namespace syncopate::bench
