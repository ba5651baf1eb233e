// Log lines on stderr: "[syncopate] warning: ...". Thread-safe.
#pragma once

#include <string_view>

namespace syncopate {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void log(LogLevel level, std::string_view message);

// What every line starts with, and the lowest level shown. Set once by `main`, before any thread.
void set_log_prefix(std::string_view prefix, LogLevel lowest_shown);

}  // namespace syncopate
