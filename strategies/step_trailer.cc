#include "strategies/step_trailer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr double kDigitBase = 16384.0;

// Where things stand, and how many digits they have.
constexpr std::size_t kLoss = 0;
constexpr std::size_t kLossDigits = 5;  // two before the point, three behind it
constexpr std::size_t kCorrect = 5;
constexpr std::size_t kSamples = 8;
constexpr std::size_t kCountDigits = 3;
constexpr std::size_t kStops = 11;
// A sum can count but not take the least: each replica adds one to the bin of its time, and the
// lowest bin in use is that of the least. Half a power of two each, from a microsecond on.
constexpr std::size_t kStood = 16;
constexpr std::size_t kStoodBins = 48;
constexpr double kBinsPerDoubling = 2.0;
constexpr double kFirstBinSeconds = 1e-6;
constexpr double kLossScale = kDigitBase * kDigitBase * kDigitBase;  // makes it a whole number
constexpr double kMostLoss = kDigitBase * kDigitBase;
static_assert(kStops + ps::kStopKinds <= kStood && kStood + kStoodBins <= kTrailerElements);

// Lowest digit first. `number`: whole, not negative, below kDigitBase ^ digits.size().
void write_digits(double number, std::span<float> digits) {
  for (float& digit : digits) {
    const double rest = std::floor(number / kDigitBase);
    digit = static_cast<float>(number - rest * kDigitBase);
    number = rest;
  }
}

double read_digits(std::span<const float> digits) {
  double number = 0.0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    number = number * kDigitBase + static_cast<double>(*digit);
  }
  return number;
}

std::size_t stood_bin(double seconds) {
  const double bin =
      kBinsPerDoubling * std::log2(std::max(seconds, kFirstBinSeconds) / kFirstBinSeconds);
  return std::min(static_cast<std::size_t>(bin), kStoodBins - 1);
}

// The middle of a bin, as ratios go.
double stood_in(std::size_t bin) {
  return kFirstBinSeconds * std::exp2((static_cast<double>(bin) + 0.5) / kBinsPerDoubling);
}

}  // namespace

void write_trailer(const StepReport& report, std::span<float> trailer) {
  check(trailer.size() == static_cast<std::size_t>(kTrailerElements), "the trailer has its size");
  std::fill(trailer.begin(), trailer.end(), 0.0F);
  const double loss = report.scores.loss;
  if (loss >= 0.0 && loss < kMostLoss) {
    // In two parts: a double has not the bits for all digits at once.
    const double whole = std::floor(loss);
    write_digits(std::floor((loss - whole) * kLossScale), trailer.subspan(kLoss, 3));
    write_digits(whole, trailer.subspan(kLoss + 3, kLossDigits - 3));
  } else {
    trailer[kLoss] = std::numeric_limits<float>::quiet_NaN();
  }
  write_digits(static_cast<double>(report.scores.num_correct),
               trailer.subspan(kCorrect, kCountDigits));
  write_digits(static_cast<double>(report.scores.num_samples),
               trailer.subspan(kSamples, kCountDigits));
  for (std::size_t i = 0; i < ps::kStopKinds; ++i) {
    trailer[kStops + i] = static_cast<float>(report.stops.by_kind[i]);
  }
  trailer[kStood + stood_bin(report.stood_seconds)] = 1.0F;
}

StepReport read_trailer(std::span<const float> trailer) {
  StepReport report;
  report.scores.loss = read_digits(trailer.subspan(kLoss + 3, kLossDigits - 3)) +
                       read_digits(trailer.subspan(kLoss, 3)) / kLossScale;
  report.scores.num_correct =
      static_cast<std::int64_t>(read_digits(trailer.subspan(kCorrect, kCountDigits)));
  report.scores.num_samples =
      static_cast<std::int64_t>(read_digits(trailer.subspan(kSamples, kCountDigits)));
  for (std::size_t i = 0; i < ps::kStopKinds; ++i) {
    report.stops.by_kind[i] = static_cast<int>(trailer[kStops + i]);
  }
  const auto stood = trailer.subspan(kStood, kStoodBins);
  const auto least = std::ranges::find_if(stood, [](float replicas) { return replicas > 0.0F; });
  if (least != stood.end()) {
    report.stood_seconds = stood_in(static_cast<std::size_t>(least - stood.begin()));
  }
  return report;
}

}  // namespace syncopate
