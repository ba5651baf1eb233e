// The figures of the answer: the time of every run, and the accuracy of the best variants.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/axis.h"
#include "bench/plots/charts.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Winners are blue and the rest grey; where nothing is shown no row has a colour.
std::string_view colour_of(const Outcome& outcome, std::size_t row) {
  if (!outcome.answer.has_winners()) return colour::kInk;
  const RowState state = outcome.cells[row].state;
  return state == RowState::kWinner || state == RowState::kTie ? colour::kAnswer : colour::kRest;
}

// What the figure says to a screen reader.
std::string description_of(const Outcome& outcome, const std::vector<std::size_t>& order) {
  std::string text;
  for (const std::size_t row : order) {
    const RowOutcome& cell = outcome.cells[row];
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", row_name(outcome.rows[row]));
    text += cell.ratio > 0.0 ? fmt::format("{} s, {}", short_seconds(cell.seconds),
                                           row == outcome.soonest
                                               ? "the soonest"
                                               : ratio_text(cell.ratio) + " times the soonest")
                             : state_text(cell);
  }
  return text;
}

// Returns an axis for all times and all intervals of the ratio to the best time.
Axis axis_of_times(const Outcome& outcome, double best) {
  double low = best;
  double high = best;
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    std::vector<double> times = outcome.rows[row].reached_seconds;
    const auto& over = outcome.cells[row].over_best;
    if (over && std::isfinite(over->high)) times.push_back(best * over->high);
    for (const double seconds : times) {
      if (seconds <= 0.0) continue;  // has no place on a logarithmic axis
      low = std::min(low, seconds);
      high = std::max(high, seconds);
    }
  }
  return {"", 0.9 * low, 1.06 * high, Scale::kLogarithmic,
          logarithmic_ticks(0.9 * low, 1.06 * high)};
}

class TimeFigure {
 public:
  TimeFigure(const Outcome& outcome, FigureForm form)
      : outcome_(outcome),
        is_narrow_(form == FigureForm::kNarrow),
        order_(sorted_rows(outcome)),
        best_(outcome.cells[*outcome.soonest].seconds),
        axis_(axis_of_times(outcome, best_)),
        width_(is_narrow_ ? 358.0 : 650.0),
        left_(is_narrow_ ? 10.0 : 206.0),
        right_(width_ - (is_narrow_ ? 10.0 : 138.0)),
        top_(is_narrow_ ? 30.0 : 34.0),
        row_height_(is_narrow_ ? 58.0 : 60.0),
        picture_(width_, "Seconds to " + target_text(outcome.comparison),
                 description_of(outcome, order_)) {}

  Picture draw() {
    const double bottom = top_of(order_.size());
    draw_heads();
    const std::vector<std::string> texts = tick_texts(axis_);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const double x = x_of(axis_.ticks[i]);
      draw_upright(x, colour::kGrid, 1.0, "");
      picture_.text({x, bottom + 17.0}, texts[i],
                    {.size = 12.0, .fill = colour::kMuted, .anchor = "middle"});
    }
    draw_upright(x_of(best_), colour::kInk, 1.2, "4 3");
    for (std::size_t i = 0; i < order_.size(); ++i) draw_row(order_[i], top_of(i));
    picture_.text({0.0, bottom + (is_narrow_ ? 33.0 : 38.0)},
                  is_narrow_ ? "dot: seed · bar: interval; on the line: a tie"
                             : "dot: one seed · grey bar: interval of the ratio to the soonest; "
                               "on the dashed line: a tie",
                  {.size = 12.0, .fill = colour::kMuted});
    picture_.end_at(bottom + 46.0);
    return std::move(picture_);
  }

 private:
  double x_of(double seconds) const {
    return left_ + std::clamp(axis_.place(seconds), 0.0, 1.0) * (right_ - left_);
  }
  double top_of(std::size_t index) const { return top_ + row_height_ * static_cast<double>(index); }

  void draw_heads() {
    TextStyle muted{.size = is_narrow_ ? 12.0 : 13.0, .fill = colour::kMuted};
    if (!is_narrow_) picture_.text({0.0, 12.0}, "Strategy, soonest first", muted);
    picture_.text({is_narrow_ ? 0.0 : left_, 12.0},
                  fmt::format("Seconds to {} accuracy", target_text(outcome_.comparison)), muted);
    muted.anchor = "end";
    picture_.text({width_, 12.0}, "times as long (interval)", muted);
    picture_.line({0.0, top_ - 10.0}, {width_, top_ - 10.0}, colour::kInk, 1.0);
  }

  // On a phone a row's name stands above its strip, and no line crosses it.
  void draw_upright(double x, std::string_view stroke, double width, std::string_view dash) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      picture_.line({x, top_of(i) + (is_narrow_ ? 19.0 : 0.0)}, {x, top_of(i + 1) - 4.0}, stroke,
                    width, dash);
    }
  }

  void draw_row(std::size_t row, double top) {
    const RowOutcome& cell = outcome_.cells[row];
    const std::string_view fill = colour_of(outcome_, row);
    const std::string_view ink = fill == colour::kRest ? colour::kInk : fill;
    const double middle = top + row_height_ / 2.0;
    const double dots = is_narrow_ ? top + 35.0 : middle + 4.0;
    if (top > top_) picture_.line({0.0, top - 2.0}, {width_, top - 2.0}, colour::kRule, 1.0);
    picture_.text({0.0, is_narrow_ ? top + 13.0 : middle - 8.0},
                  shortened(row_name(outcome_.rows[row]), is_narrow_ ? 30 : 24),
                  {.size = is_narrow_ ? 14.0 : 15.0, .fill = ink, .is_bold = true});
    if (!is_narrow_) {
      picture_.text({0.0, middle + 8.0}, shortened(outcome_.rows[row].name, 28),
                    {.size = 11.5, .fill = colour::kMuted, .is_mono = true});
    }
    if (cell.over_best && std::isfinite(cell.over_best->high)) {
      const double begin = x_of(best_ * cell.over_best->low);
      const double y = dots + (is_narrow_ ? 9.0 : 13.0);
      picture_.box({begin, y - 3.0}, x_of(best_ * cell.over_best->high) - begin, 6.0,
                   {.fill = "#c3cad1", .radius = 2.0});
      picture_.box({x_of(cell.seconds) - 1.5, y - 6.0}, 3.0, 12.0, {.fill = fill});
    }
    draw_dots(row, dots, fill);
    draw_ratio(cell, top, ink);
  }

  // Dots that would overlap are stacked, so that five equal seeds are seen as five. Runs that
  // missed the target are hollow, at the end.
  void draw_dots(std::size_t row, double y, std::string_view fill) {
    std::vector<double> times = outcome_.rows[row].reached_seconds;
    std::ranges::sort(times);
    std::vector<double> levels;  // the last dot of each
    const auto place_of = [&](double x) {
      auto level = std::ranges::find_if(levels, [&](double last) { return x - last > 8.0; });
      if (level == levels.end()) level = levels.insert(level, x);
      *level = x;
      return Point{x, y - (is_narrow_ ? 5.0 : 8.0) * static_cast<double>(level - levels.begin())};
    };
    for (const double seconds : times) {
      picture_.dot(place_of(x_of(seconds)), is_narrow_ ? 4.0 : 4.5, fill, colour::kPaper,
                   short_seconds(seconds) + " s");
    }
    for (int missed = outcome_.rows[row].reached; missed < outcome_.rows[row].done; ++missed) {
      picture_.dot(place_of(right_ + 4.0), 3.5, colour::kPaper, fill, "missed the target");
    }
  }

  void draw_ratio(const RowOutcome& cell, double top, std::string_view ink) {
    std::string ratio = cell.ratio > 0.0 ? ratio_text(cell.ratio) + "×" : state_text(cell);
    if (cell.state == RowState::kWinner) ratio = "winner";
    if (cell.state == RowState::kTie) ratio += " · tie";
    const std::string interval = cell.over_best ? interval_text(*cell.over_best) : "";
    if (is_narrow_) {
      picture_.text({width_, top + 13.0}, ratio + interval, {.size = 13.0, .anchor = "end"});
      return;
    }
    picture_.text({width_, top + 25.0}, ratio,
                  {.size = 15.0, .fill = ink, .anchor = "end", .is_bold = true});
    picture_.text({width_, top + 43.0}, interval.empty() ? "" : interval.substr(1),
                  {.size = 13.0, .fill = colour::kMuted, .anchor = "end"});
  }

  const Outcome& outcome_;
  const bool is_narrow_;
  const std::vector<std::size_t> order_;
  const double best_;
  const Axis axis_;
  const double width_;
  const double left_;
  const double right_;
  const double top_;
  const double row_height_;
  Picture picture_;
};

// Returns the soonest row of each kind, the soonest first.
std::vector<std::size_t> best_of_kinds(const Outcome& outcome) {
  std::vector<std::size_t> best;
  for (const std::size_t row : sorted_rows(outcome)) {
    if (outcome.cells[row].ratio == 0.0) continue;
    const auto has_kind = [&](std::size_t other) {
      return outcome.rows[other].kind == outcome.rows[row].kind;
    };
    if (std::ranges::none_of(best, has_kind)) best.push_back(row);
  }
  return best;
}

// Returns "one worker, sync and async", of the kinds of these rows.
std::string kinds_text(const Outcome& outcome, const std::vector<std::size_t>& rows) {
  constexpr std::array kNames = {"one worker", "sync", "async"};
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < kNames.size(); ++kind) {
    const auto is_of_kind = [&](std::size_t row) {
      return outcome.rows[row].kind == static_cast<Kind>(kind);
    };
    if (std::ranges::any_of(rows, is_of_kind)) names.emplace_back(kNames.at(kind));
  }
  return listed(names);
}

}  // namespace

Picture time_figure(const Outcome& outcome, FigureForm form) {
  return TimeFigure(outcome, form).draw();
}

Picture accuracy_figure(const Outcome& outcome, FigureForm form) {
  const Comparison& comparison = outcome.comparison;
  const bool is_narrow = form == FigureForm::kNarrow;
  const double target = 100.0 * comparison.target_accuracy.value_or(1.0);
  const std::vector<std::size_t> best = best_of_kinds(outcome);
  const auto rows = static_cast<double>(outcome.rows.size());
  LineChart chart{
      .title = "Accuracy while training",
      .y = accuracy_axis(fmt::format("{} accuracy, %; soonest of {}",
                                     capitalised(std::string(comparison.watched_split())),
                                     kinds_text(outcome, best)),
                         target - kShownPoints),
      .level = Level{target, "target " + target_text(comparison)},
      .height = is_narrow ? 178.0 : std::max(250.0, 68.0 + 60.0 * rows),
      .is_narrow = is_narrow,
      .has_legend_inside = true};
  constexpr std::array<std::string_view, 3> kDashes = {"", "7 3", "2 3"};
  double slowest = 0.0;
  for (std::size_t i = best.size(); i-- > 0;) {
    const VariantSummary& row = outcome.rows[best[i]];
    const double seconds = outcome.cells[best[i]].seconds;
    const std::string_view stroke = colour_of(outcome, best[i]);
    Curve curve{.points = mean_curve(comparison.variants[best[i]], accuracy_at_seconds),
                .stroke = stroke,
                .width = stroke == colour::kAnswer ? 2.6 : 2.0,
                .dash = kDashes.at(i),
                .name = shortened(short_name(row), is_narrow ? 18 : 26)};
    const double chance = comparison.chance ? 100.0 * comparison.chance->share : 0.0;
    curve.points.insert(curve.points.begin(), {0.0, chance});
    chart.curves.push_back(std::move(curve));
    chart.curves.push_back({.points = {{seconds, target}},
                            .stroke = stroke,
                            .width = 0.0,
                            .marker = {.shape = 0, .radius = 4.5}});
    slowest = std::max(slowest, seconds);
  }
  const double end = std::min(2.6 * slowest, extent_of(chart.curves, &Point::x).high);
  for (Curve& curve : chart.curves) {
    std::erase_if(curve.points, [&](const Point& point) { return point.x > end; });
  }
  chart.x = linear_axis(comparison.has_virtual_clock ? "simulated seconds" : "seconds", 0.0, end, 6,
                        false);
  return draw(chart);
}

}  // namespace syncopate::bench
