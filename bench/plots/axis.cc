#include "bench/plots/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// The tolerance for a tick that misses the end of the axis by a rounding error only.
constexpr double kSlack = 1e-9;
// The least ratio of the ends of a logarithmic axis; below it, too few ticks would fit.
constexpr double kLeastRatio = 8.0;

// An axis that is logarithmic in the distance to 100 % draws smaller distances at this one, in %.
constexpr double kLeastMissing = 0.01;
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
  if (tick >= 1e5 || tick < 1e-4) {
    const int exponent = static_cast<int>(std::floor(std::log10(tick) + kSlack));
    const double factor = std::round(tick / std::pow(10.0, exponent));
    return fmt::format("{:g}e{}", factor, exponent);
  }
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(tick) + kSlack)));
  return decimal_text(tick, decimals);
}

std::string near_hundred_text(double tick) {
  const double missing = 100.0 - tick;
  return decimal_text(tick,
                      std::max(0, -static_cast<int>(std::floor(std::log10(missing) + kSlack))));
}

// Returns the numbers 1, 2 and 5 times powers of ten, from the largest that is at most `low` to the
// smallest that is at least `high`.
std::vector<double> decade_steps(double low, double high) {
  std::vector<double> steps;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high * 10.0;
       power *= 10.0) {
    for (const double factor : {1.0, 2.0, 5.0}) steps.push_back(factor * power);
  }
  const auto begin = std::find_if(steps.rbegin(), steps.rend(), [&](double step) {
                       return step <= low * (1.0 + kSlack);
                     }).base();
  const auto end = std::find_if(steps.begin(), steps.end(),
                                [&](double step) { return step >= high * (1.0 - kSlack); });
  return {begin == steps.begin() ? begin : begin - 1, end == steps.end() ? end : end + 1};
}

// Thins out the ticks to at most kMostTicks: first to powers of ten, then to every n-th of these.
std::vector<double> marked(const std::vector<double>& steps) {
  if (steps.size() <= kMostTicks + 1) return steps;
  std::vector<double> powers;
  for (const double step : steps) {
    const double exponent = std::log10(step);
    if (std::abs(exponent - std::round(exponent)) < kSlack) powers.push_back(step);
  }
  const std::size_t stride = (powers.size() + kMostTicks - 1) / kMostTicks;
  std::vector<double> few;
  for (std::size_t i = 0; i < powers.size(); i += stride) few.push_back(powers[i]);
  return few;
}

}  // namespace

double text_width(std::string_view text) {
  constexpr double kPerCharacter = 6.9;
  return kPerCharacter * static_cast<double>(width_of(text));
}

double widest_tick(const Axis& axis) {
  double widest = 0.0;
  for (const std::string& text : tick_texts(axis)) widest = std::max(widest, text_width(text));
  return widest;
}

double Axis::place(double value) const {
  const auto missing = [](double percent) { return std::max(100.0 - percent, kLeastMissing); };
  switch (scale) {
    case Scale::kLogarithmic:
      return std::log(std::max(value, 1e-300) / low) / std::log(high / low);
    case Scale::kNearHundred:
      return std::log(missing(value) / missing(low)) / std::log(missing(high) / missing(low));
    default:
      return (value - low) / (high - low);
  }
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
  const std::vector<double> steps =
      decade_steps(std::max(low, kLeastSize), std::min(high, kLargestSize));
  return {title, steps.front(), steps.back(), Scale::kLogarithmic, marked(steps)};
}

Axis percent_axis(const std::string& title, double low, double high) {
  const double most = 100.0 - low;
  const double least = std::max(100.0 - high, kLeastMissing);
  if (most < kLeastRatio * least) {
    Axis axis = linear_axis(title, low, high, kMostTicks, true);
    axis.high = std::min(axis.high, 100.0);
    return axis;
  }
  const std::vector<double> missing = decade_steps(least, most);
  Axis axis{title, 100.0 - missing.back(), 100.0 - missing.front(), Scale::kNearHundred, {}};
  for (const double one : missing) axis.ticks.insert(axis.ticks.begin(), 100.0 - one);
  return axis;
}

Axis counting_axis(const std::string& title, double low, double high, int most) {
  give_extent(low, high);
  const double step = std::max(1.0, round_step(high - low, most));
  return {title, low, high, Scale::kLinear, ticks_between(low, high, step)};
}

std::vector<std::string> tick_texts(const Axis& axis) {
  std::vector<std::string> texts;
  const int decimals = decimals_of(axis.ticks);
  for (const double tick : axis.ticks) {
    switch (axis.scale) {
      case Scale::kLogarithmic:
        texts.push_back(logarithmic_text(tick));
        break;
      case Scale::kNearHundred:
        texts.push_back(near_hundred_text(tick));
        break;
      default:
        texts.push_back(decimal_text(tick, decimals));
    }
  }
  return texts;
}

}  // namespace syncopate::bench
