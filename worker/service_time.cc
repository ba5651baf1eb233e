#include "worker/service_time.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

constexpr double kLongestMilliseconds = 60'000.0;

}  // namespace

ServiceTimeOptions parse_service_time(std::string_view text, std::string_view what) {
  const auto refuse = [&] {
    return UsageError(std::string(what) + " " + std::string(text) +
                      ": expected constant:MS or exponential:MS, milliseconds up to 60000, such as "
                      "exponential:5");
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) throw refuse();
  const std::string_view kind = text.substr(0, colon);
  const std::string number(text.substr(colon + 1));
  ServiceTimeOptions options;
  if (kind == "constant") options.kind = ServiceTimeKind::kConstant;
  if (kind == "exponential") options.kind = ServiceTimeKind::kExponential;
  char* end = nullptr;
  options.mean_milliseconds = std::strtod(number.c_str(), &end);
  if (options.kind == ServiceTimeKind::kNone || number.empty() || *end != '\0' ||
      !(options.mean_milliseconds >= 0.0 && options.mean_milliseconds <= kLongestMilliseconds)) {
    throw refuse();
  }
  return options;
}

std::chrono::nanoseconds service_time(const ServiceTimeOptions& options, std::int64_t step) {
  double milliseconds = options.mean_milliseconds;
  if (options.kind == ServiceTimeKind::kNone) return std::chrono::nanoseconds(0);
  if (options.kind == ServiceTimeKind::kExponential) {
    const RandomStream draws(options.seed,
                             hash_name("service time of worker " + std::to_string(options.worker)));
    const double uniform = static_cast<double>(draws.uniform(static_cast<std::uint64_t>(step)));
    milliseconds *= -std::log1p(-uniform);
  }
  return std::chrono::nanoseconds(std::llround(milliseconds * 1e6));
}

void spend_service_time(const ServiceTimeOptions& options, std::int64_t step) {
  if (options.kind == ServiceTimeKind::kNone) return;
  std::this_thread::sleep_for(service_time(options, step));
}

}  // namespace syncopate
