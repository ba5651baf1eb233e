// From values to places along an axis, and the round numbers that are marked on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::bench {

enum class Scale : std::uint8_t {
  kLinear,
  kLogarithmic,
  kNearHundred,  // of percents, logarithmic in what is missing to 100: 0, 50, 80, 90, 95, 98, 99
};

struct Axis {
  std::string title;  // with its unit: "training time (s)"
  double low = 0.0;   // at its beginning
  double high = 1.0;  // at its end
  Scale scale = Scale::kLinear;
  std::vector<double> ticks;  // round numbers within [low, high], ascending

  // 0 at low, 1 at high; beyond them for what lies beyond.
  double place(double value) const;
};

// 1, 2 or 5 times a power of ten: the least of them that leaves at most `most` steps in `range`.
double round_step(double range, int most);

// From low to high, or from tick to tick around them when `extend`. Room for `most` ticks or so.
Axis linear_axis(const std::string& title, double low, double high, int most, bool extend);
// From tick to tick around low and high. Linear where low is not above 0, or where the two are too
// near for a logarithm to help.
Axis logarithmic_axis(const std::string& title, double low, double high);
// The same for percents, low and high within [0, 100]: accuracies climb from 10 to 90 at once and
// differ by tenths in the end.
Axis percent_axis(const std::string& title, double low, double high);
// Ticks at whole numbers only.
Axis counting_axis(const std::string& title, double low, double high, int most);

// What stands at each tick: as many decimals as the ticks need, "60,000" rather than 6e4.
std::vector<std::string> tick_texts(const Axis& axis);

}  // namespace syncopate::bench
