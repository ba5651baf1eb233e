// The command line of `syncopate launch`.
#pragma once

#include <span>
#include <string>

#include "deploy/cli/options.h"

namespace syncopate {

// As parse_command_line, for what follows the word `launch`. Its own flags end at `--`.
CommandOptions parse_launch_options(std::span<const std::string> arguments,
                                    const Environment& environment);

}  // namespace syncopate
