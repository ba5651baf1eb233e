// The command line of `syncopate train`.
#pragma once

#include <span>
#include <string>

#include "deploy/cli/options.h"
#include "worker/run/train_options.h"

namespace syncopate {

// As parse_command_line, for what follows the word `train`.
CommandOptions parse_train_options(std::span<const std::string> arguments,
                                   const Environment& environment);

// The options that several runs share, whose strategy and cluster the caller sets afterwards: what
// flags mean together is not checked. Empty and zero fields stand for flags that were not given.
// Throws UsageError, also for --help.
TrainOptions parse_shared_train_options(std::span<const std::string> arguments);

}  // namespace syncopate
