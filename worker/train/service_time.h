// Adds an artificial compute delay to each step (--service-time, --slow, --pause), to test a
// strategy under the conditions of slow or uneven machines. The training thread sleeps during the
// delay; heartbeats are still sent.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"
#include "worker/train/step_profile.h"

namespace syncopate {

enum class ServiceTimeKind : std::uint8_t {
  kNone,
  kConstant,
  kExponential,
  kLognormal,
  // Groups of consecutive steps take longer, as on a machine that other jobs use now and then.
  kBursts,
  kFile,  // measured times from a file
};
constexpr auto named_values(ServiceTimeKind /*type*/) {
  return std::array{Named{"constant", ServiceTimeKind::kConstant},
                    Named{"exponential", ServiceTimeKind::kExponential},
                    Named{"lognormal", ServiceTimeKind::kLognormal},
                    Named{"bursts", ServiceTimeKind::kBursts},
                    Named{"file", ServiceTimeKind::kFile}};
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
  // For kBursts: the time of a step in a burst, divided by the time of another step.
  double burst_factor = 10.0;
  // For kFile: the file, and its times divided by their mean.
  std::string file{};
  std::shared_ptr<const std::vector<double>> times{};
  std::uint64_t seed = 1;
  std::vector<Slowness> slow;
  std::vector<Pause> pauses;
};

// For kBursts: the length of a burst, and the fraction of the steps that are in bursts.
inline constexpr std::int64_t kBurstSteps = 20;
inline constexpr double kBurstShare = 0.1;

// The forms of a compute delay, for --help and error messages.
inline constexpr std::string_view kServiceTimeForms =
    "constant:MS | exponential:MS | lognormal:MS[:SIGMA] | bursts:MS[:FACTOR] | file:FILE[:MS]";

// Parses a compute delay, such as "constant:20", "exponential:5", "lognormal:5:0.5" or
// "bursts:5:10", where the first number is the mean in milliseconds. "file:FILE" reads measured
// times: a text file with a time in milliseconds on each line. Each worker takes them one after the
// other from a random line on, so that slow times stay neighbours; "file:FILE:MS" multiplies them
// so that MS is their mean. Throws UsageError naming `what`, such as "--service-time".
ServiceTimeOptions parse_service_time(std::string_view text, std::string_view what);
// Describes a compute delay that parse_service_time() reads, such as "1 ms on average,
// exponentially distributed". Does not read the file of "file:FILE". Throws UsageError.
std::string describe_service_time(std::string_view text);
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

// Delays the steps of one worker, on the thread that calls it. With a profile, a step is delayed in
// parts, as if each layer computed more slowly; so messages overlap with the delay in the same way
// as with computation. Without a profile, the whole delay comes before the first values are used.
class StepDelays {
 public:
  // Sleeps for about this time, and returns how long it slept.
  using Sleep = std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)>;

  StepDelays(const ServiceTimeOptions& options, int worker,
             std::optional<StepProfile> profile = std::nullopt, Sleep sleep = sleep_for);
  // Returns the delay of step `step`, which begins at `now`: the compute delay plus the pauses that
  // are due. A pause is due in the first step that begins at its time or later, and only once. The
  // times of pauses count from the first call.
  std::chrono::nanoseconds due(std::int64_t step, std::chrono::steady_clock::time_point now);
  // Begins a step. The following functions sleep for a part of the step's delay.
  void begin(std::int64_t step);
  void before_use(BucketId bucket) { spend_until(profile_ ? profile_->use(bucket) : 1.0); }
  void before_push(BucketId bucket) { spend_until(profile_ ? profile_->completion(bucket) : 1.0); }

 private:
  static std::chrono::nanoseconds sleep_for(std::chrono::nanoseconds time);
  // Sleeps until this fraction of the step's delay is spent.
  void spend_until(double fraction);

  const ServiceTimeOptions& options_;
  const int worker_;
  const std::optional<StepProfile> profile_;
  const Sleep sleep_;
  std::chrono::nanoseconds delay_{0};  // of the current step
  std::chrono::nanoseconds spent_{0};  // time that the current step has slept
  std::vector<Pause> pauses_;          // pauses of this worker that were not made yet
  std::optional<std::chrono::steady_clock::time_point> begun_;
};

}  // namespace syncopate
