// An axis of a plot: maps values to positions and chooses the round numbers to mark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::bench {

enum class Scale : std::uint8_t { kLinear, kLogarithmic };

struct Axis {
  std::string title;  // title of the axis with its unit: "training time (s)"
  double low = 0.0;   // value at the axis's beginning
  double high = 1.0;  // value at the axis's end
  Scale scale = Scale::kLinear;
  std::vector<double> ticks;  // round numbers within [low, high], ascending

  // Returns the position of a value: 0 at low, 1 at high, outside [0, 1] beyond them.
  double place(double value) const;
};

// Returns the least of 1, 2, 5 times a power of ten that divides `range` into up to `most` steps.
double round_step(double range, int most);

// Makes an axis with about `most` ticks; `extend` moves low and high outwards to the next tick.
Axis linear_axis(const std::string& title, double low, double high, int most, bool extend);
// Makes a logarithmic axis from the tick below low to the tick above high. Linear if low is not
// positive or if high is less than 8 times low.
Axis logarithmic_axis(const std::string& title, double low, double high);
// Makes a linear axis with as many ticks as fit into `room` side by side. is_whole: only whole
// numbers are marked.
Axis fitting_axis(const std::string& title, double low, double high, double room,
                  bool is_whole = false);

// Returns up to eight round numbers within the limits: 1, 2, 5 times powers of ten, more between
// them where the limits are close, and fewer where they are far apart. low and high are positive.
std::vector<double> logarithmic_ticks(double low, double high);

// The size of the letters of ticks.
inline constexpr double kTickSize = 12.0;
// The labels of the axis's ticks, with as many decimals as needed: "60,000" rather than "6e4".
std::vector<std::string> tick_texts(const Axis& axis);
// Returns the width of the widest label of the axis.
double widest_tick(const Axis& axis);

}  // namespace syncopate::bench
