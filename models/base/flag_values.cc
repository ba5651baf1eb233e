#include "models/base/flag_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// The longest time that a flag accepts: far below the 9.2e9 s that 64 bits of nanoseconds hold.
constexpr double kLongestSeconds = 1e6;

struct Unit {
  const char* name;
  double factor;
};
constexpr std::array kTimeUnits = {Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1.0}};
constexpr std::array kRateUnits = {Unit{"kbit", 1e3 / 8}, Unit{"mbit", 1e6 / 8},
                                   Unit{"gbit", 1e9 / 8}, Unit{"kb", 1e3},
                                   Unit{"mb", 1e6},       Unit{"gb", 1e9}};

// Parses a number followed by one of `units`. A number without a unit is multiplied by `plain`;
// when `plain` is 0 the unit is required. Returns nullopt for any other text.
template <std::size_t N>
std::optional<double> parse_measure(const std::string& text, const std::array<Unit, N>& units,
                                    double plain) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number) || number < 0.0) return std::nullopt;
  const std::string unit(end);
  if (unit.empty() && plain > 0.0) return number * plain;
  for (const Unit& known : units) {
    if (unit == known.name) return number * known.factor;
  }
  return std::nullopt;
}

template <typename Number>
std::string to_shortest_text(Number number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace

double parse_seconds(const std::string& text, const std::string& flag) {
  const auto seconds = parse_measure(text, kTimeUnits, 1.0);
  if (!seconds || *seconds > kLongestSeconds) {
    throw UsageError(fmt::format(
        "{} {}: expected a time from 0 to 1000000 seconds, such as 1ms, 250us or 2s", flag, text));
  }
  return *seconds;
}

double parse_rate(const std::string& text, const std::string& flag) {
  const auto rate = parse_measure(text, kRateUnits, 0.0);
  if (!rate || *rate <= 0.0) {
    throw UsageError(fmt::format(
        "{} {}: expected a positive rate, such as 1gbit, 100mbit or 50mb (bytes)", flag, text));
  }
  return *rate;
}

std::optional<Fields> parse_fields(std::string_view text) {
  Fields fields;
  if (text.empty()) return fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (!fields.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
      return std::nullopt;
    }
    begin = end + 1;
  }
  return fields;
}

std::string shortest_text(double number) { return to_shortest_text(number); }
std::string shortest_text(float number) { return to_shortest_text(number); }

}  // namespace syncopate
