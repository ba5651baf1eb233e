// Parses values of flags (times, rates, lists of named fields), and formats numbers for messages
// and files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

// Parses a time of 0 to 1e6 s, such as "1ms", "250us", "2s" or "0.5" (seconds), and returns
// seconds. Throws UsageError naming `flag`.
double parse_seconds(const std::string& text, const std::string& flag);

// Parses a positive rate, such as "1gbit", "100mbit" or "10mb" (megabytes per second), and returns
// bytes per second. Throws UsageError naming `flag`.
double parse_rate(const std::string& text, const std::string& flag);

// The fields of a list such as "worker=2,at=30s": the value of each field by its name.
using Fields = std::map<std::string, std::string, std::less<>>;

// Parses a list of named fields, such as "worker=2,at=30s". Returns an empty map for "". Returns
// nullopt when an entry has no "=" or a name occurs twice.
std::optional<Fields> parse_fields(std::string_view text);

// Returns the shortest text that parses back to exactly this number, such as "0.001" or "1e+300".
std::string shortest_text(double number);
std::string shortest_text(float number);

}  // namespace syncopate
