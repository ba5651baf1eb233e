// The version of the project and the compiler of this build.
#pragma once

#include <string_view>

namespace syncopate {

std::string_view program_version() noexcept;   // "0.1.0"
std::string_view compiler_version() noexcept;  // "GNU 12.2.0"

}  // namespace syncopate
