// Parsing of flag values (times, rates, lists of named fields), and numbers as text for messages
// and files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

// Parses a time in seconds: "1ms", "250us", "2s" or "0.5" (seconds); 0 to 1e6 s. Throws UsageError
// naming `flag`.
double parse_seconds(const std::string& text, const std::string& flag);

// Parses a positive rate in bytes per second: "1gbit", "100mbit", "10mb" (bytes). Throws UsageError
// naming `flag`.
double parse_rate(const std::string& text, const std::string& flag);

// The values of a flag's list by field name.
using Fields = std::map<std::string, std::string, std::less<>>;

// Parses a flag's list such as "worker=2,at=30s". Returns no fields for "", and nullopt when a part
// lacks its "=" or a name occurs twice.
std::optional<Fields> parse_fields(std::string_view text);

// Returns the shortest text that reads back as this number: "0.001", "1e+300".
std::string shortest_text(double number);
std::string shortest_text(float number);

}  // namespace syncopate
