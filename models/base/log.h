// Log lines on stderr: "[syncopate] warning: ...". Thread-safe.
#pragma once

#include <string_view>

namespace syncopate {

enum class LogLevel { kInfo, kWarning, kError };

// Writes one line. `launch` puts the role's name in front of the lines of each role.
void log(LogLevel level, std::string_view message);

}  // namespace syncopate
