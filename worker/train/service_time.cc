#include "worker/train/service_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <string>
#include <thread>

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
std::optional<double> number_in(std::string_view text, double most, std::string_view unit = "") {
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

}  // namespace

ServiceTimeOptions parse_service_time(std::string_view text, std::string_view what) {
  const auto refuse = [&] {
    return UsageError(std::string(what) + " " + std::string(text) +
                      ": expected constant:MS, exponential:MS or lognormal:MS[:SIGMA], "
                      "milliseconds up to 60000, such as exponential:5");
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) throw refuse();
  const auto kind = value_named<ServiceTimeKind>(text.substr(0, colon));
  if (!kind) throw refuse();
  std::string_view mean = text.substr(colon + 1);
  ServiceTimeOptions options{.kind = *kind};
  if (options.kind == ServiceTimeKind::kLognormal) {
    const std::size_t second = mean.find(':');
    if (second != std::string_view::npos) {
      const auto sigma = number_in(mean.substr(second + 1), kWidestSigma);
      if (!sigma) throw refuse();
      options.sigma = *sigma;
      mean = mean.substr(0, second);
    }
  }
  const auto milliseconds = number_in(mean, kLongestMilliseconds);
  if (!milliseconds) throw refuse();
  options.mean_milliseconds = *milliseconds;
  return options;
}

std::string to_text(const ServiceTimeOptions& options) {
  std::string text = fmt::format("{}:{}", name(options.kind), options.mean_milliseconds);
  if (options.kind == ServiceTimeKind::kLognormal) text += fmt::format(":{}", options.sigma);
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
  const auto index = static_cast<std::uint64_t>(step);
  if (options.kind == ServiceTimeKind::kExponential) {
    milliseconds *= -std::log1p(-static_cast<double>(draws.uniform(index)));
  }
  if (options.kind == ServiceTimeKind::kLognormal) {
    // The factor is exp(sigma z - sigma^2 / 2), where z = radius * cos(angle) is a normal deviate.
    // Its mean is 1, because exp(sigma z) has the mean exp(sigma^2 / 2). Source: Box and Muller
    // 1958, "A note on the generation of random normal deviates".
    const double radius =
        std::sqrt(-2.0 * std::log1p(-static_cast<double>(draws.uniform(2 * index))));
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(draws.uniform(2 * index + 1));
    milliseconds *=
        std::exp(options.sigma * radius * std::cos(angle) - options.sigma * options.sigma / 2.0);
  }
  return std::chrono::nanoseconds(std::llround(milliseconds * 1e6));
}

StepDelays::StepDelays(const ServiceTimeOptions& options, int worker)
    : options_(options), worker_(worker) {
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

void StepDelays::spend(std::int64_t step) {
  const std::chrono::nanoseconds delay = due(step, std::chrono::steady_clock::now());
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
}

}  // namespace syncopate
