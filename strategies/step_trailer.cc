#include "strategies/step_trailer.h"

#include <algorithm>
#include <cmath>

#include "models/base/errors.h"

namespace syncopate {
namespace {

enum Place : std::size_t { kLossHigh, kLossLow, kCorrect, kSamples = 4, kStops = 6 };

constexpr std::int64_t kCountBase = 65536;

void write_count(std::int64_t count, std::span<float> parts) {
  parts[0] = static_cast<float>(count / kCountBase);
  parts[1] = static_cast<float>(count % kCountBase);
}

std::int64_t read_count(std::span<const float> parts) {
  return static_cast<std::int64_t>(parts[0]) * kCountBase + static_cast<std::int64_t>(parts[1]);
}

}  // namespace

void write_trailer(const StepReport& report, std::span<float> trailer) {
  check(trailer.size() == static_cast<std::size_t>(kTrailerElements), "the trailer has its size");
  std::fill(trailer.begin(), trailer.end(), 0.0F);
  const auto high = static_cast<float>(report.scores.loss);
  trailer[kLossHigh] = high;
  if (std::isfinite(high)) {
    trailer[kLossLow] = static_cast<float>(report.scores.loss - static_cast<double>(high));
  }
  write_count(report.scores.num_correct, trailer.subspan(kCorrect, 2));
  write_count(report.scores.num_samples, trailer.subspan(kSamples, 2));
  for (std::size_t i = 0; i < kStopKinds; ++i) {
    trailer[kStops + i] = static_cast<float>(report.stops[i]);
  }
}

StepReport read_trailer(std::span<const float> trailer) {
  StepReport report;
  report.scores.loss =
      static_cast<double>(trailer[kLossHigh]) + static_cast<double>(trailer[kLossLow]);
  report.scores.num_correct = read_count(trailer.subspan(kCorrect, 2));
  report.scores.num_samples = read_count(trailer.subspan(kSamples, 2));
  for (std::size_t i = 0; i < kStopKinds; ++i) {
    report.stops[i] = static_cast<int>(trailer[kStops + i]);
  }
  return report;
}

}  // namespace syncopate
