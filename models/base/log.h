// Writes log lines to stderr, such as "[syncopate] warning: ...". Thread-safe.
#pragma once

#include <string_view>

namespace syncopate {

enum class LogLevel { kInfo, kWarning, kError };

// Writes one line. `syncopate launch` prefixes each role's lines with the role's name.
void log(LogLevel level, std::string_view message);

}  // namespace syncopate
