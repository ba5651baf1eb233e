// What CMake knows of this build: the project's version and the compiler.
#pragma once

#include <string_view>

namespace syncopate {

std::string_view program_version() noexcept;   // "0.1.0"
std::string_view compiler_version() noexcept;  // "GNU 12.2.0"

}  // namespace syncopate
