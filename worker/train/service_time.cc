#include "worker/train/service_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <string>
#include <thread>
#include <utility>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

constexpr double kLongestMilliseconds = 60'000.0;
constexpr double kWidestSigma = 3.0;
constexpr double kLeastFactor = 0.001;  // a step must take some time
constexpr double kLargestFactor = 1000.0;
constexpr double kLongestSeconds = 1e6;
constexpr int kMostWorkers = 1 << 16;

// Parses a number from 0 to `most`; `unit` may follow it.
std::optional<double> number_in(std::string_view text, double most = kLongestMilliseconds,
                                std::string_view unit = "") {
  if (!unit.empty() && text.ends_with(unit)) text.remove_suffix(unit.size());
  const std::string number(text);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(value >= 0.0 && value <= most)) return std::nullopt;
  return value;
}

std::optional<int> worker_in(const std::string& text) {
  const auto number = number_in(text, kMostWorkers);
  if (!number || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int>(*number);
}

// Reads the times of kFile.
void read_times(const std::string& file, std::string_view what, ServiceTimeOptions& options) {
  std::ifstream in(file);
  if (!in) throw UsageError(fmt::format("{} file:{}: cannot read the file", what, file));
  std::vector<double> times;
  double sum = 0.0;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const auto time = number_in(line);
    if (!time) {
      throw UsageError(fmt::format("{} file:{}: line {}: expected a time in milliseconds, not '{}'",
                                   what, file, number, line.substr(0, 40)));
    }
    times.push_back(*time);
    sum += *time;
  }
  if (in.bad()) throw UsageError(fmt::format("{} file:{}: cannot read the file", what, file));
  if (!(sum > 0.0)) throw UsageError(fmt::format("{} file:{}: no time above 0", what, file));
  options.file = file;
  options.mean_milliseconds = sum / static_cast<double>(times.size());
  for (double& time : times) time /= options.mean_milliseconds;
  options.times = std::make_shared<const std::vector<double>>(std::move(times));
}

// Returns a random time with a mean of 1.
double draw(const ServiceTimeOptions& options, const RandomStream& draws, std::uint64_t step) {
  switch (options.kind) {
    case ServiceTimeKind::kExponential:
      return -std::log1p(-static_cast<double>(draws.uniform(step)));
    case ServiceTimeKind::kLognormal: {
      // The factor is exp(sigma z - sigma^2 / 2), where z = radius * cos(angle) is a normal
      // deviate. Its mean is 1, because exp(sigma z) has the mean exp(sigma^2 / 2). Source: Box and
      // Muller 1958, "A note on the generation of random normal deviates".
      const double radius =
          std::sqrt(-2.0 * std::log1p(-static_cast<double>(draws.uniform(2 * step))));
      const double angle =
          2.0 * std::numbers::pi * static_cast<double>(draws.uniform(2 * step + 1));
      return std::exp(options.sigma * radius * std::cos(angle) -
                      options.sigma * options.sigma / 2.0);
    }
    case ServiceTimeKind::kBursts: {
      // The bursts of different workers begin at different steps. Steps count from 1, so draw 0 is
      // free for the beginning.
      const auto first = static_cast<std::uint64_t>(kBurstSteps * draws.uniform(0));
      const bool is_in_burst = draws.uniform(1 + (step + first) / kBurstSteps) < kBurstShare;
      return (is_in_burst ? options.burst_factor : 1.0) /
             (1.0 + kBurstShare * (options.burst_factor - 1.0));
    }
    case ServiceTimeKind::kFile: {
      const std::vector<double>& times = *options.times;
      const auto first = static_cast<std::uint64_t>(static_cast<double>(times.size()) *
                                                    static_cast<double>(draws.uniform(0)));
      return times[(first + step) % times.size()];
    }
    default:
      return 1.0;
  }
}

}  // namespace

ServiceTimeOptions parse_service_time(std::string_view text, std::string_view what) {
  const auto refuse = [&] {
    return UsageError(
        fmt::format("{} {}: expected {}, milliseconds up to {:g}, such as exponential:5", what,
                    text, kServiceTimeForms, kLongestMilliseconds));
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) throw refuse();
  const auto kind = value_named<ServiceTimeKind>(text.substr(0, colon));
  if (!kind) throw refuse();
  ServiceTimeOptions options{.kind = *kind};
  std::string_view first = text.substr(colon + 1);
  std::optional<double> second;
  const std::size_t next = first.rfind(':');
  if (next != std::string_view::npos) second = number_in(first.substr(next + 1));
  if (second) first = first.substr(0, next);
  if (*kind == ServiceTimeKind::kFile) {
    read_times(std::string(first), what, options);
    if (second) options.mean_milliseconds = *second;
    return options;
  }
  const auto mean = number_in(first);
  if (!mean) throw refuse();
  options.mean_milliseconds = *mean;
  if (!second) return options;
  if (*kind == ServiceTimeKind::kLognormal && *second <= kWidestSigma) {
    options.sigma = *second;
  } else if (*kind == ServiceTimeKind::kBursts && *second >= kLeastFactor &&
             *second <= kLargestFactor) {
    options.burst_factor = *second;
  } else {
    throw refuse();
  }
  return options;
}

std::string describe_service_time(std::string_view text) {
  constexpr std::string_view kOfFile = "file:";
  if (text.starts_with(kOfFile)) {
    return fmt::format("the measured times in {}, in their order, from a random one on",
                       text.substr(kOfFile.size()));
  }
  const ServiceTimeOptions options = parse_service_time(text, "--service-time");
  const std::string mean = fmt::format("{} ms", options.mean_milliseconds);
  switch (options.kind) {
    case ServiceTimeKind::kExponential:
      return mean + " on average, exponentially distributed";
    case ServiceTimeKind::kLognormal:
      return fmt::format(
          "{} on average, and its logarithm has a normal distribution with a "
          "standard deviation of {}",
          mean, options.sigma);
    case ServiceTimeKind::kBursts:
      return fmt::format(
          "{} on average; in bursts of {} steps, about {:g} % of all, {} times as "
          "long as otherwise",
          mean, kBurstSteps, 100.0 * kBurstShare, options.burst_factor);
    default:
      return mean + " in every step";
  }
}

std::string to_text(const ServiceTimeOptions& options) {
  const std::string mean = fmt::format("{}", options.mean_milliseconds);
  std::string text = std::string(name(options.kind)) + ":";
  if (options.kind == ServiceTimeKind::kFile) return text + options.file + ":" + mean;
  text += mean;
  if (options.kind == ServiceTimeKind::kLognormal) text += fmt::format(":{}", options.sigma);
  if (options.kind == ServiceTimeKind::kBursts) text += fmt::format(":{}", options.burst_factor);
  return text;
}

Slowness parse_slowness(std::string_view text) {
  const auto fields = parse_fields(text);
  if (fields && fields->size() == 2 && fields->contains("worker") && fields->contains("factor")) {
    const auto worker = worker_in(fields->at("worker"));
    const auto factor = number_in(fields->at("factor"), kLargestFactor);
    if (worker && factor && *factor >= kLeastFactor) return {*worker, *factor};
  }
  throw UsageError("--slow " + std::string(text) + ": expected worker=W,factor=F, F from 0.001 " +
                   "to 1000, such as worker=3,factor=4");
}

Pause parse_pause(std::string_view text) {
  const auto fields = parse_fields(text);
  if (fields && fields->size() == 3 && fields->contains("worker") && fields->contains("at") &&
      fields->contains("for")) {
    const auto worker = worker_in(fields->at("worker"));
    const auto at = number_in(fields->at("at"), kLongestSeconds, "s");
    const auto length = number_in(fields->at("for"), kLongestSeconds, "s");
    if (worker && at && length) return {*worker, *at, *length};
  }
  throw UsageError("--pause " + std::string(text) + ": expected worker=W,at=SECONDS,for=SECONDS, " +
                   "such as worker=1,at=20s,for=5s");
}

std::chrono::nanoseconds service_time(const ServiceTimeOptions& options, int worker,
                                      std::int64_t step) {
  if (options.kind == ServiceTimeKind::kNone) return std::chrono::nanoseconds(0);
  double milliseconds = options.mean_milliseconds;
  for (const Slowness& slow : options.slow) {
    if (slow.worker == worker) milliseconds *= slow.factor;
  }
  const RandomStream draws(options.seed,
                           hash_name(fmt::format("service time of worker {}", worker)));
  milliseconds *= draw(options, draws, static_cast<std::uint64_t>(step));
  return std::chrono::nanoseconds(std::llround(milliseconds * 1e6));
}

StepDelays::StepDelays(const ServiceTimeOptions& options, int worker,
                       std::optional<StepProfile> profile, Sleep sleep)
    : options_(options), worker_(worker), profile_(std::move(profile)), sleep_(std::move(sleep)) {
  for (const Pause& pause : options.pauses) {
    if (pause.worker == worker) pauses_.push_back(pause);
  }
}

std::chrono::nanoseconds StepDelays::due(std::int64_t step,
                                         std::chrono::steady_clock::time_point now) {
  if (!begun_) begun_ = now;
  const double seconds = std::chrono::duration<double>(now - *begun_).count();
  double sum = 0.0;
  std::erase_if(pauses_, [&](const Pause& pause) {
    if (pause.at_seconds > seconds) return false;
    sum += pause.for_seconds;
    return true;
  });
  return service_time(options_, worker_, step) + std::chrono::nanoseconds(std::llround(sum * 1e9));
}

void StepDelays::begin(std::int64_t step) {
  delay_ = due(step, std::chrono::steady_clock::now());
  spent_ = std::chrono::nanoseconds(0);
}

void StepDelays::spend_until(double fraction) {
  const auto wanted =
      std::chrono::nanoseconds(std::llround(fraction * static_cast<double>(delay_.count())));
  if (wanted <= spent_) return;
  // A thread sleeps somewhat longer than it asks for, so the next part is shortened.
  spent_ += sleep_(wanted - spent_);
}

std::chrono::nanoseconds StepDelays::sleep_for(std::chrono::nanoseconds time) {
  const auto begun = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(time);
  return std::chrono::steady_clock::now() - begun;
}

}  // namespace syncopate
