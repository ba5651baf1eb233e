#include "bench/compare/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

// Slack for a tick that lies at an end but for the rounding of doubles.
constexpr double kSlack = 1e-9;
// Below this ratio of the ends a logarithmic axis has too few round numbers.
constexpr double kLeastRatio = 8.0;

// Low and high of no extent at all still make an axis.
void give_extent(double& low, double& high) {
  if (high > low) return;
  const double around = low == 0.0 ? 1.0 : std::abs(low) / 10;
  low -= around;
  high += around;
}

std::vector<double> ticks_between(double low, double high, double step) {
  std::vector<double> ticks;
  const double first = std::ceil(low / step - kSlack);
  const double last = std::floor(high / step + kSlack);
  for (double i = first; i <= last; i += 1.0) ticks.push_back(i == 0.0 ? 0.0 : i * step);
  return ticks;
}

int decimals_of(const std::vector<double>& ticks) {
  if (ticks.size() < 2) return 0;
  const double step = ticks[1] - ticks[0];
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - kSlack)), 0, 9);
}

std::string logarithmic_text(double tick) {
  if (tick >= 1e5 || tick < 1e-4) {
    const int exponent = static_cast<int>(std::floor(std::log10(tick) + kSlack));
    const double factor = std::round(tick / std::pow(10.0, exponent));
    return fmt::format("{:g}e{}", factor, exponent);
  }
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(tick) + kSlack)));
  return decimal_text(tick, decimals);
}

}  // namespace

double Axis::place(double value) const {
  if (!is_logarithmic) return (value - low) / (high - low);
  return std::log(std::max(value, 1e-300) / low) / std::log(high / low);
}

double round_step(double range, int most) {
  const double least = range / std::max(1, most);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1.0 - kSlack)) return factor * power;
  }
  return 10.0 * power;
}

Axis linear_axis(const std::string& title, double low, double high, int most, bool extend) {
  give_extent(low, high);
  const double step = round_step(high - low, most);
  if (extend) {
    low = step * std::floor(low / step + kSlack);
    high = step * std::ceil(high / step - kSlack);
  }
  return {title, low, high, false, ticks_between(low, high, step)};
}

Axis logarithmic_axis(const std::string& title, double low, double high) {
  constexpr int kMostTicks = 7;
  if (high < kLeastRatio * low) return linear_axis(title, low, high, kMostTicks, true);
  const double decades = std::log10(high / low);
  // 1, 2, 5 in each decade; then 1 only; then every second, third... decade.
  const bool is_dense = decades * 3 <= kMostTicks;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / kMostTicks)));
  Axis axis{title, low, high, true, {}};
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int exponent = first; exponent <= last; ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (!is_dense && (factor > 1.0 || exponent % stride != 0)) continue;
      const double tick = factor * std::pow(10.0, exponent);
      if (tick >= low * (1.0 - kSlack) && tick <= high * (1.0 + kSlack)) axis.ticks.push_back(tick);
    }
  }
  return axis;
}

Axis counting_axis(const std::string& title, double low, double high, int most) {
  give_extent(low, high);
  const double step = std::max(1.0, round_step(high - low, most));
  return {title, low, high, false, ticks_between(low, high, step)};
}

std::vector<std::string> tick_texts(const Axis& axis) {
  std::vector<std::string> texts;
  const int decimals = decimals_of(axis.ticks);
  for (const double tick : axis.ticks) {
    texts.push_back(axis.is_logarithmic ? logarithmic_text(tick) : decimal_text(tick, decimals));
  }
  return texts;
}

}  // namespace syncopate::bench
