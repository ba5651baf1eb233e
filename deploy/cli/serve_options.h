// The command line of `syncopate serve`.
#pragma once

#include <span>
#include <string>

#include "deploy/cli/options.h"

namespace syncopate {

// As parse_command_line, for what follows the word `serve`.
CommandOptions parse_serve_options(std::span<const std::string> arguments,
                                   const Environment& environment);

}  // namespace syncopate
