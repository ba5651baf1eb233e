// Times and rates as people write them.
#pragma once

#include <string>

namespace syncopate {

// "1ms", "250us", "2s", "0.5" (seconds), up to 1e6 s. Throws UsageError naming `flag`.
double parse_seconds(const std::string& text, const std::string& flag);
// Bytes per second: "1gbit", "100mbit", "10mb" (bytes). Throws UsageError naming `flag`.
double parse_rate(const std::string& text, const std::string& flag);

}  // namespace syncopate
