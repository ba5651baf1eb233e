#include "bench/compare/trouble.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "models/base/errors.h"
#include "models/base/fields.h"

namespace syncopate::bench {
namespace {

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

// The value of one of them, which goes from the rest. Throws UsageError.
std::string take(Fields& fields, const std::string& name, const std::string& refusal) {
  const auto at = fields.find(name);
  if (at == fields.end()) throw UsageError(refusal);
  std::string value = std::move(at->second);
  fields.erase(at);
  return value;
}

int worker_of(const std::string& text, const std::string& refusal) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < 0 || number > (1 << 16)) throw UsageError(refusal);
  return static_cast<int>(number);
}

}  // namespace

double parse_seconds(const std::string& text, const std::string& flag) {
  const auto seconds = measure(text, kTimeUnits, 1.0);
  if (!seconds) throw UsageError(flag + " " + text + ": expected a time, such as 1ms, 250us or 2s");
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

Kill parse_kill(const std::string& text) {
  const std::string refusal = "--kill " + text +
                              ": expected worker=W,at=TIME[,restart=TIME], such as "
                              "worker=2,at=30s,restart=5s";
  Fields fields = parse_fields(text).value_or(Fields{});
  Kill kill;
  kill.worker = worker_of(take(fields, "worker", refusal), refusal);
  kill.at_seconds = parse_seconds(take(fields, "at", refusal), "--kill");
  if (fields.contains("restart")) {
    kill.restart_seconds = parse_seconds(take(fields, "restart", refusal), "--kill");
  }
  if (!fields.empty()) throw UsageError(refusal);
  return kill;
}

Join parse_join(const std::string& text) {
  const std::string refusal =
      "--join " + text + ": expected worker=W,at=TIME, such as worker=4,at=30s";
  Fields fields = parse_fields(text).value_or(Fields{});
  Join join;
  join.worker = worker_of(take(fields, "worker", refusal), refusal);
  join.at_seconds = parse_seconds(take(fields, "at", refusal), "--join");
  if (!fields.empty()) throw UsageError(refusal);
  return join;
}

}  // namespace syncopate::bench
