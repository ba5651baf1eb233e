#include "models/base/measures.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr double kLongestSeconds = 1e6;  // nanoseconds in 64 bits bear some thousand times as much

struct Unit {
  const char* name;
  double factor;
};
constexpr std::array kTimeUnits = {Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1.0}};
constexpr std::array kRateUnits = {Unit{"kbit", 1e3 / 8}, Unit{"mbit", 1e6 / 8},
                                   Unit{"gbit", 1e9 / 8}, Unit{"kb", 1e3},
                                   Unit{"mb", 1e6},       Unit{"gb", 1e9}};

// A number and one of the units; without a unit, times `plain`.
template <std::size_t N>
std::optional<double> measure(const std::string& text, const std::array<Unit, N>& units,
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

}  // namespace

double parse_seconds(const std::string& text, const std::string& flag) {
  const auto seconds = measure(text, kTimeUnits, 1.0);
  if (!seconds || *seconds > kLongestSeconds) {
    throw UsageError(flag + " " + text +
                     ": expected a time, such as 1ms, 250us or 2s, up to 1000000 seconds");
  }
  return *seconds;
}

double parse_rate(const std::string& text, const std::string& flag) {
  const auto rate = measure(text, kRateUnits, 0.0);
  if (!rate || *rate <= 0.0) {
    throw UsageError(flag + " " + text +
                     ": expected a rate, such as 1gbit, 100mbit or 50mb (bytes)");
  }
  return *rate;
}

}  // namespace syncopate
