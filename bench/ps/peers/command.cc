#include "bench/ps/peers/command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/ps/peers/ps_peers.h"

namespace syncopate::bench {

Command declare_ps_peer_rank(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsPeerRankOptions>();
  app.add_option("--rank", options->rank)->check(CLI::Range(0, 1));
  app.add_option("--transport", options->transport);
  return [options] { run_ps_peer_rank(*options); };
}

}  // namespace syncopate::bench
