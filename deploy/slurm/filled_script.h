// A job script for what `syncopate sbatch` was asked for.
#pragma once

#include <string>

#include "deploy/cli/options.h"

namespace syncopate {

// Throws InternalError where a script lacks a line that is to be filled in.
std::string filled_script(const SbatchOptions& options);

}  // namespace syncopate
