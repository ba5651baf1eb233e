// Adds an artificial compute delay to each step (--service-time, --slow, --pause), to test a
// strategy under the conditions of slow or uneven machines. The training thread sleeps during the
// delay; heartbeats are still sent.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"

namespace syncopate {

enum class ServiceTimeKind : std::uint8_t { kNone, kConstant, kExponential, kLognormal };
constexpr auto named_values(ServiceTimeKind /*type*/) {
  return std::array{Named{"constant", ServiceTimeKind::kConstant},
                    Named{"exponential", ServiceTimeKind::kExponential},
                    Named{"lognormal", ServiceTimeKind::kLognormal}};
}

// A slow worker: its compute delays are multiplied by `factor`.
struct Slowness {
  int worker = 0;
  double factor = 1.0;
};

// A pause of one worker. The worker pauses in its first step that begins at `at_seconds` or later.
struct Pause {
  int worker = 0;
  double at_seconds = 0.0;  // seconds since training began
  double for_seconds = 0.0;
};

struct ServiceTimeOptions {
  ServiceTimeKind kind = ServiceTimeKind::kNone;
  double mean_milliseconds = 0.0;
  double sigma = 0.5;  // for kLognormal: the standard deviation of the logarithm
  std::uint64_t seed = 1;
  std::vector<Slowness> slow;
  std::vector<Pause> pauses;
};

// Parses a compute delay: "constant:20", "exponential:5" or "lognormal:5[:SIGMA]", where the number
// is the mean in milliseconds. Throws UsageError naming `what`, such as "--service-time".
ServiceTimeOptions parse_service_time(std::string_view text, std::string_view what);
// Returns the text that parse_service_time() reads. The kind must not be kNone.
std::string to_text(const ServiceTimeOptions& options);
// Parses a slow worker, such as "worker=3,factor=4", with a factor from 0.001 to 1000. Throws
// UsageError.
Slowness parse_slowness(std::string_view text);
// Parses a pause, such as "worker=1,at=20s,for=5s". Throws UsageError.
Pause parse_pause(std::string_view text);

// Returns the compute delay of a worker's step, without pauses. It depends on (seed, worker, step)
// only.
std::chrono::nanoseconds service_time(const ServiceTimeOptions& options, int worker,
                                      std::int64_t step);

// Delays the steps of one worker, on the thread that calls it.
class StepDelays {
 public:
  StepDelays(const ServiceTimeOptions& options, int worker);
  // Returns the delay of step `step`, which begins at `now`: the compute delay plus the pauses that
  // are due. A pause is due in the first step that begins at its time or later, and only once. The
  // times of pauses count from the first call.
  std::chrono::nanoseconds due(std::int64_t step, std::chrono::steady_clock::time_point now);
  // Sleeps for the delay that is due now.
  void spend(std::int64_t step);

 private:
  const ServiceTimeOptions& options_;
  const int worker_;
  std::vector<Pause> pauses_;  // pauses of this worker that were not made yet
  std::optional<std::chrono::steady_clock::time_point> begun_;
};

}  // namespace syncopate
