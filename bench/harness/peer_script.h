// Finds the scripts of bench/peers/: beside an installed program, or in the source tree.
#pragma once

#include <filesystem>
#include <string_view>

namespace syncopate::bench {

// Returns the path of a script such as "torch_step.py". The file may be missing; the caller that
// starts the script reports that.
std::filesystem::path peer_script(std::string_view file);

}  // namespace syncopate::bench
