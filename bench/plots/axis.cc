#include "bench/plots/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/plots/picture.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// The tolerance for a tick that misses the end of the axis by a rounding error only.
constexpr double kSlack = 1e-9;
// The least ratio of the ends of a logarithmic axis; below it, too few ticks would fit.
constexpr double kLeastRatio = 8.0;

constexpr int kMostTicks = 7;

// Values that differ by less than this part of their size count as one value: they differ by
// rounding, and the labels of ticks between them would be equal.
constexpr double kLeastExtent = 1e-9;
// Sizes outside these are drawn as if they were the limit; powers of ten beyond them are not
// finite.
constexpr double kLeastSize = 1e-300;
constexpr double kLargestSize = 1e300;

// Widens a range of values that is empty or as narrow as rounding errors, so that a single value
// still gets an axis.
void give_extent(double& low, double& high) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > std::max(kLeastExtent * size, kLeastSize)) return;
  const double around = size <= kLeastSize ? 1.0 : size / 10;
  low -= around;
  high += around;
}

std::vector<double> ticks_between(double low, double high, double step) {
  std::vector<double> ticks;
  const double first = std::ceil(low / step - kSlack);
  const double last = std::floor(high / step + kSlack);
  // Counts with an integer: adding 1 to a large double may leave it unchanged.
  const int count = last >= first ? static_cast<int>(last - first) + 1 : 0;
  for (int i = 0; i < count; ++i) {
    const double multiple = first + i;
    ticks.push_back(multiple == 0.0 ? 0.0 : multiple * step);  // never -0
  }
  return ticks;
}

int decimals_of(const std::vector<double>& ticks) {
  if (ticks.size() < 2) return 0;
  const double step = ticks[1] - ticks[0];
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - kSlack)), 0, 9);
}

std::string logarithmic_text(double tick) {
  if (tick < 1e7 && tick >= 1e-4) return without_zeros(decimal_text(tick, 7));
  const int exponent = static_cast<int>(std::floor(std::log10(tick) + kSlack));
  return fmt::format("{:g}e{}", std::round(tick / std::pow(10.0, exponent)), exponent);
}

}  // namespace

double widest_tick(const Axis& axis) {
  double widest = 0.0;
  for (const std::string& text : tick_texts(axis)) {
    widest = std::max(widest, text_width(text, kTickSize));
  }
  return widest;
}

double Axis::place(double value) const {
  if (scale == Scale::kLinear) return (value - low) / (high - low);
  return std::log(std::max(value, kLeastSize) / low) / std::log(high / low);
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
  return {title, low, high, Scale::kLinear, ticks_between(low, high, step)};
}

Axis logarithmic_axis(const std::string& title, double low, double high) {
  if (low <= 0.0 || high < kLeastRatio * low)
    return linear_axis(title, low, high, kMostTicks, true);
  // The least and the largest of 1, 2, 5 times a power of ten that enclose the values.
  low = 1.0 / round_step(1.0 / std::max(low, kLeastSize), 1);
  high = round_step(std::min(high, kLargestSize), 1);
  return {title, low, high, Scale::kLogarithmic, logarithmic_ticks(low, high)};
}

std::vector<double> logarithmic_ticks(double low, double high) {
  const std::array<std::vector<double>, 3> steps = {
      {{1, 2, 5}, {1, 1.5, 2, 3, 5, 7}, {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}}};
  std::vector<double> ticks;
  for (const std::vector<double>& digits : steps) {
    ticks.clear();
    for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power) {
      for (const double digit : digits) {
        const double tick = digit * std::pow(10.0, power);
        if (low * (1.0 - kSlack) <= tick && tick <= high * (1.0 + kSlack)) ticks.push_back(tick);
      }
    }
    if (ticks.size() >= 4) break;
  }
  if (ticks.size() <= kMostTicks + 1) return ticks;
  // Only powers of ten, or every n-th of them.
  ticks.clear();
  const double stride = std::ceil((std::log10(high / low) + 1.0) / kMostTicks);
  for (double power = std::ceil(std::log10(low) - kSlack); power <= std::log10(high) + kSlack;
       power += stride) {
    ticks.push_back(std::pow(10.0, power));
  }
  return ticks;
}

Axis fitting_axis(const std::string& title, double low, double high, double room, bool is_whole) {
  constexpr double kGap = 12.0;
  for (int most = kMostTicks;; --most) {
    const double steps = is_whole ? std::clamp(std::floor(high - low), 1.0, 1.0 * most) : most;
    Axis axis = linear_axis(title, low, high, static_cast<int>(steps), false);
    const auto count = static_cast<double>(axis.ticks.size());
    if (most == 1 || (widest_tick(axis) + kGap) * count <= room) return axis;
  }
}

std::vector<std::string> tick_texts(const Axis& axis) {
  std::vector<std::string> texts;
  const int decimals = decimals_of(axis.ticks);
  for (const double tick : axis.ticks) {
    texts.push_back(axis.scale == Scale::kLinear ? without_zeros(decimal_text(tick, decimals))
                                                 : logarithmic_text(tick));
  }
  return texts;
}

}  // namespace syncopate::bench
