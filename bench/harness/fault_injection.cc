#include "bench/harness/fault_injection.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate::bench {
namespace {

// Removes the field `name` of a parsed fault flag and returns its value. Throws UsageError with the
// text `refusal` when the field is missing.
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

std::string never_took_place(const Kill& kill) {
  return "the kill of worker " + std::to_string(kill.worker) + " at " +
         fmt::format("{:g} s never took place: the run was over before", kill.at_seconds);
}

std::optional<int> worker_of_fault(const std::string& flag, const std::string& value) {
  if (flag == "--slow") return parse_slowness(value).worker;
  if (flag == "--pause") return parse_pause(value).worker;
  if (flag == "--kill") return parse_kill(value).worker;
  return std::nullopt;
}

}  // namespace syncopate::bench
