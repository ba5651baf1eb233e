#include "strategies/step_trailer.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr double kDigitBase = 16384.0;

// The layout of the trailer, the step report as digits to base 2^14: the index of each number's
// first digit, and the count of its digits. A sum has the digits of its fraction first.
struct SumDigits {
  std::size_t fraction;
  std::size_t whole;
  std::size_t count() const { return fraction + whole; }
};
constexpr std::size_t kLoss = 0;
// Up to 7e25: the squared errors of targets of 10^12.
constexpr SumDigits kLossDigits{3, 6};
constexpr std::size_t kMetrics = 9;
constexpr SumDigits kMetricDigits{2, 4};
constexpr std::size_t kSamples = 33;
constexpr std::size_t kCountDigits = 3;
constexpr std::size_t kStops = 36;
constexpr std::size_t kBad = 48;
// The trailer's sum can count but cannot take a minimum. Each replica therefore adds one to the bin
// of its blocked time, and the lowest bin that is not zero holds the least. A bin spans half a
// power of two, starting at one microsecond.
constexpr std::size_t kBlocked = 64;
constexpr std::size_t kBlockedBins = 48;
constexpr double kBinsPerDoubling = 2.0;
constexpr double kFirstBinSeconds = 1e-6;
static_assert(kLossDigits.fraction + kLossDigits.whole == kMetrics);
static_assert(kMetrics + kMostMetrics * (kMetricDigits.fraction + kMetricDigits.whole) == kSamples);
static_assert(kStops + ps::kStopKinds <= kBad && kBad + kCountDigits <= kBlocked);
static_assert(kBlocked + kBlockedBins <= kTrailerElements);

// Writes a number, lowest digit first: whole, not negative, below kDigitBase ^ digits.size().
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

double power(std::size_t digits) { return std::pow(kDigitBase, static_cast<double>(digits)); }

// Writes a sum, or NaN when it is negative, not finite or too large. The fraction and the whole
// part are written apart: one double cannot hold the five digits, 70 bits, of a scaled sum.
void write_sum(double sum, const SumDigits& digits, std::span<float> elements) {
  if (!(sum >= 0.0) || sum >= power(digits.whole)) {
    elements[0] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  const double whole = std::floor(sum);
  write_digits(std::floor((sum - whole) * power(digits.fraction)), elements.first(digits.fraction));
  write_digits(whole, elements.subspan(digits.fraction, digits.whole));
}

double read_sum(const SumDigits& digits, std::span<const float> elements) {
  return read_digits(elements.subspan(digits.fraction, digits.whole)) +
         read_digits(elements.first(digits.fraction)) / power(digits.fraction);
}

std::size_t bin_of_seconds(double seconds) {
  const double bin =
      kBinsPerDoubling * std::log2(std::max(seconds, kFirstBinSeconds) / kFirstBinSeconds);
  return std::min(static_cast<std::size_t>(bin), kBlockedBins - 1);
}

// Returns the geometric middle of a bin of blocked time.
double seconds_of_bin(std::size_t bin) {
  return kFirstBinSeconds * std::exp2((static_cast<double>(bin) + 0.5) / kBinsPerDoubling);
}

}  // namespace

void write_trailer(const StepReport& report, std::span<float> trailer) {
  check(trailer.size() == static_cast<std::size_t>(kTrailerElements),
        "a trailer has kTrailerElements elements");
  std::fill(trailer.begin(), trailer.end(), 0.0F);
  write_sum(report.scores.loss, kLossDigits, trailer.subspan(kLoss));
  for (std::size_t i = 0; i < kMostMetrics; ++i) {
    write_sum(report.scores.metrics[i], kMetricDigits,
              trailer.subspan(kMetrics + i * kMetricDigits.count()));
  }
  write_digits(static_cast<double>(report.scores.num_samples),
               trailer.subspan(kSamples, kCountDigits));
  write_digits(static_cast<double>(report.scores.num_bad), trailer.subspan(kBad, kCountDigits));
  for (std::size_t i = 0; i < ps::kStopKinds; ++i) {
    trailer[kStops + i] = static_cast<float>(report.stops.by_kind[i]);
  }
  trailer[kBlocked + bin_of_seconds(report.blocked_seconds)] = 1.0F;
}

StepReport read_trailer(std::span<const float> trailer) {
  StepReport report;
  report.scores.loss = read_sum(kLossDigits, trailer.subspan(kLoss));
  for (std::size_t i = 0; i < kMostMetrics; ++i) {
    report.scores.metrics[i] =
        read_sum(kMetricDigits, trailer.subspan(kMetrics + i * kMetricDigits.count()));
  }
  report.scores.num_samples =
      static_cast<std::int64_t>(read_digits(trailer.subspan(kSamples, kCountDigits)));
  report.scores.num_bad =
      static_cast<std::int64_t>(read_digits(trailer.subspan(kBad, kCountDigits)));
  for (std::size_t i = 0; i < ps::kStopKinds; ++i) {
    report.stops.by_kind[i] = static_cast<int>(trailer[kStops + i]);
  }
  const auto bins = trailer.subspan(kBlocked, kBlockedBins);
  const auto least = std::ranges::find_if(bins, [](float replicas) { return replicas > 0.0F; });
  if (least != bins.end()) {
    report.blocked_seconds = seconds_of_bin(static_cast<std::size_t>(least - bins.begin()));
  }
  return report;
}

}  // namespace syncopate
