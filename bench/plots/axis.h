// The axis of a plot, which maps values to positions. Also chooses round numbers to mark on the
// axis.
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

  // Returns the position of a value: 0 at `low` and 1 at `high`. The position of a value outside
  // [low, high] is outside [0, 1].
  double place(double value) const;
};

// Returns the smallest round number (1, 2 or 5 times a power of ten) that divides `range` into at
// most `most` steps.
double round_step(double range, int most);

// Makes an axis with about `most` ticks; `extend` moves low and high outwards to the next tick.
Axis linear_axis(const std::string& title, double low, double high, int most, bool extend);
// Makes a logarithmic axis from the tick below `low` to the tick above `high`. If `low` is not
// positive or `high` is less than 8 times `low`, makes a linear axis instead.
Axis logarithmic_axis(const std::string& title, double low, double high);
// Makes a linear axis. It has as many ticks as fit into the width `room` when their labels stand
// side by side. is_whole: only whole numbers are ticks.
Axis fitting_axis(const std::string& title, double low, double high, double room,
                  bool is_whole = false);

// Returns up to eight round numbers in [low, high], where low and high are positive. Usually these
// are 1, 2 and 5 times powers of ten. If `low` and `high` are close, numbers such as 1.5 or 3 are
// added; if they are far apart, only powers of ten are returned.
std::vector<double> logarithmic_ticks(double low, double high);

// The font size of the labels of ticks.
inline constexpr double kTickSize = 12.0;
// Returns the labels of the axis's ticks, with as many decimals as needed and without exponents,
// such as "60,000".
std::vector<std::string> tick_texts(const Axis& axis);
// Returns the width of the widest label of the axis.
double widest_tick(const Axis& axis);

}  // namespace syncopate::bench
