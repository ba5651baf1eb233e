// The command line of `syncopate train`.
#pragma once

#include <span>
#include <string>

#include "deploy/cli/options.h"

namespace syncopate {

// As parse_command_line, for what follows the word `train`.
CommandOptions parse_train_options(std::span<const std::string> arguments,
                                   const Environment& environment);

}  // namespace syncopate
