// The flags of `syncopate sbatch`.
#pragma once

#include "deploy/cli/options.h"

namespace syncopate {

CommandOptions parse_sbatch_options(std::span<const std::string> arguments);

}  // namespace syncopate
