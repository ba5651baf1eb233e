// Time that a step takes beyond its computation, on purpose: what slow and uneven machines do to a
// strategy can be tried on one. The training thread sleeps; heartbeats go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace syncopate {

enum class ServiceTimeKind : std::uint8_t { kNone, kConstant, kExponential };

struct ServiceTimeOptions {
  ServiceTimeKind kind = ServiceTimeKind::kNone;
  double mean_milliseconds = 0.0;
  std::uint64_t seed = 1;
  int worker = 0;
};

// "constant:20", "exponential:5" (milliseconds on average). Throws UsageError that names `what`,
// such as "--service-time".
ServiceTimeOptions parse_service_time(std::string_view text, std::string_view what);

// Of the worker's `step`-th step: a function of (seed, worker, step).
std::chrono::nanoseconds service_time(const ServiceTimeOptions& options, std::int64_t step);

// Sleeps that long.
void spend_service_time(const ServiceTimeOptions& options, std::int64_t step);

}  // namespace syncopate
