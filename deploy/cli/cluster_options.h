// The flags by which a user says who takes part, and the command line of `syncopate cluster`.
#pragma once

#include <span>
#include <string>

#include "deploy/cli/options.h"

namespace CLI {
class App;
}

namespace syncopate {

// --rank, --world-size, --servers, --rendezvous, --nonce, --role. What they mean together is
// resolve_cluster's affair. --local-rank is taken and ignored.
void add_cluster_flags(CLI::App& app, ClusterFlags& flags);

// As parse_command_line, for what follows the word `cluster`.
CommandOptions parse_cluster_options(std::span<const std::string> arguments,
                                     const Environment& environment);

}  // namespace syncopate
