// Log lines on stderr: "[syncopate] warning: ...". Thread-safe.
#pragma once

#include <string_view>

namespace syncopate {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void log(LogLevel level, std::string_view message);

// Sets the text in brackets at the start of every log line, and the lowest level that is shown.
// Called once by `main` before any thread starts.
void set_log_prefix(std::string_view prefix, LogLevel lowest_shown);

}  // namespace syncopate
