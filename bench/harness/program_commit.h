// The commit of the sources of this program.
#pragma once

#include <string_view>

namespace syncopate::bench {

// Returns the first 12 digits of the commit, such as "50825c1e0b3a", with "-dirty" if tracked files
// had changes; "" if the program was not built from a git checkout. The build defines this function
// (deploy/cmake/ProgramCommit.cmake).
std::string_view program_commit() noexcept;

}  // namespace syncopate::bench
