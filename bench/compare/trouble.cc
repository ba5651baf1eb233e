#include "bench/compare/trouble.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "models/base/errors.h"

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

using Fields = std::map<std::string, std::string>;

// "a=1,b=2". Throws UsageError saying what was `expected`.
Fields fields_of(const std::string& flag, const std::string& text, const std::string& expected) {
  Fields fields;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    const bool is_new = equals != std::string::npos &&
                        fields.emplace(part.substr(0, equals), part.substr(equals + 1)).second;
    if (!is_new) throw UsageError(flag + " " + text + ": expected " + expected);
    begin = end + 1;
  }
  return fields;
}

// Takes the field out. Throws UsageError.
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
  const std::string expected =
      "worker=W,at=TIME[,restart=TIME], such as worker=2,at=30s,restart=5s";
  const std::string refusal = "--kill " + text + ": expected " + expected;
  Fields fields = fields_of("--kill", text, expected);
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
  const std::string expected = "worker=W,at=TIME, such as worker=4,at=30s";
  const std::string refusal = "--join " + text + ": expected " + expected;
  Fields fields = fields_of("--join", text, expected);
  Join join;
  join.worker = worker_of(take(fields, "worker", refusal), refusal);
  join.at_seconds = parse_seconds(take(fields, "at", refusal), "--join");
  if (!fields.empty()) throw UsageError(refusal);
  return join;
}

}  // namespace syncopate::bench
