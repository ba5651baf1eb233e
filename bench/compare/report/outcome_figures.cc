#include "bench/compare/report/outcome_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/axis.h"
#include "bench/plots/picture.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::string_view kGrid = "#e6eaee";
constexpr std::string_view kBar = "#c3cad1";
constexpr std::string_view kDashed = "4 3";

// Winners are blue and the rest grey; where nothing is shown no row has a colour.
std::string_view colour_of(const Outcome& outcome, std::size_t row) {
  const AnswerForm form = outcome.answer.form;
  const bool has_answer =
      form == AnswerForm::kWinner || form == AnswerForm::kTie || form == AnswerForm::kMissed;
  if (!has_answer) return colour::kInk;
  const RowState state = outcome.cells[row].state;
  return state == RowState::kWinner || state == RowState::kTie ? colour::kAnswer : colour::kRest;
}

std::string finished(const Picture& picture, double height, FigureForm form) {
  if (form == FigureForm::kFile) return picture.file(height);
  return picture.element(height, form == FigureForm::kWide ? "wide" : "narrow");
}

// Returns two to seven round numbers within the limits: 1, 2, 5 times a power of ten, and more
// between them where the limits are close.
std::vector<double> logarithmic_ticks(double low, double high) {
  const std::array<std::vector<double>, 3> steps = {
      {{1, 2, 5}, {1, 1.5, 2, 3, 5, 7}, {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}}};
  std::vector<double> ticks;
  for (const std::vector<double>& digits : steps) {
    ticks.clear();
    for (int power = -6; power <= 6; ++power) {
      for (const double digit : digits) {
        const double tick = digit * std::pow(10.0, power);
        if (low <= tick && tick <= high) ticks.push_back(tick);
      }
    }
    if (ticks.size() >= 4) break;
  }
  return ticks;
}

class TimeFigure {
 public:
  TimeFigure(const Outcome& outcome, FigureForm form)
      : outcome_(outcome),
        form_(form),
        is_narrow_(form == FigureForm::kNarrow),
        order_(sorted_rows(outcome)),
        width_(is_narrow_ ? 358.0 : 650.0),
        top_(is_narrow_ ? 30.0 : 34.0),
        row_height_(is_narrow_ ? 58.0 : 60.0),
        picture_(width_, "Seconds to " + target_text(outcome.comparison), description()) {
    best_ = outcome.cells[*outcome.soonest].seconds;
    low_ = std::numeric_limits<double>::infinity();
    high_ = 0.0;
    for (const std::size_t row : order_) {
      for (const double seconds : outcome.rows[row].reached_seconds) extend(seconds);
      const auto& over = outcome.cells[row].over_best;
      if (over && std::isfinite(over->high)) extend(best_ * over->high);
    }
    low_ *= 0.9;
    high_ *= 1.06;
  }

  std::string draw() {
    const double bottom = top_ + row_height_ * static_cast<double>(order_.size());
    draw_heads();
    draw_grid(bottom);
    for (std::size_t i = 0; i < order_.size(); ++i) draw_row(i);
    picture_.text({0.0, bottom + (is_narrow_ ? 33.0 : 38.0)},
                  is_narrow_ ? "dot: seed · bar: interval; touching the line: a tie"
                             : "dot: one seed · grey bar: interval; one that touches the dashed "
                               "line is a tie",
                  {.size = 12.0, .fill = colour::kMuted});
    return finished(picture_, bottom + 46.0, form_);
  }

 private:
  void extend(double seconds) {
    low_ = std::min(low_, seconds);
    high_ = std::max(high_, seconds);
  }
  double left() const { return is_narrow_ ? 10.0 : 206.0; }
  double right() const { return width_ - (is_narrow_ ? 10.0 : 138.0); }
  double x_of(double seconds) const {
    const double place = std::log(seconds / low_) / std::log(high_ / low_);
    return left() + std::clamp(place, 0.0, 1.0) * (right() - left());
  }

  std::string description() const {
    std::string text;
    for (const std::size_t row : order_) {
      const RowOutcome& cell = outcome_.cells[row];
      text += fmt::format("{}{}: ", text.empty() ? "" : "; ", row_name(outcome_.rows[row]));
      text += cell.ratio > 0.0 ? fmt::format("{} s, {} times the soonest",
                                             short_seconds(cell.seconds), ratio_text(cell.ratio))
                               : fmt::format("{} of {} runs reached it", cell.reached, cell.runs);
    }
    return text;
  }

  void draw_heads() {
    const TextStyle muted{.size = is_narrow_ ? 12.0 : 13.0, .fill = colour::kMuted};
    TextStyle at_end = muted;
    at_end.anchor = "end";
    const std::string seconds =
        fmt::format("Seconds to {} accuracy", target_text(outcome_.comparison));
    picture_.text({0.0, 12.0}, is_narrow_ ? seconds : "Strategy, soonest first", muted);
    if (!is_narrow_) picture_.text({left(), 12.0}, seconds, muted);
    picture_.text({width_, 12.0}, "times as long (interval)", at_end);
    picture_.line({0.0, top_ - 10.0}, {width_, top_ - 10.0}, colour::kInk, 1.0);
  }

  void draw_grid(double bottom) {
    for (const double tick : logarithmic_ticks(low_, high_)) {
      draw_upright(x_of(tick), kGrid, 1.0, "");
      picture_.text({x_of(tick), bottom + 17.0}, exact_text(tick),
                    {.size = 12.0, .fill = colour::kMuted, .anchor = "middle"});
    }
    draw_upright(x_of(best_), colour::kInk, 1.2, kDashed);
  }

  // On a phone a row's name stands above its strip, and no line crosses it.
  void draw_upright(double x, std::string_view stroke, double width, std::string_view dash) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const double top = top_ + row_height_ * static_cast<double>(i);
      picture_.line({x, top + (is_narrow_ ? 19.0 : 0.0)}, {x, top + row_height_ - 4.0}, stroke,
                    width, dash);
    }
  }

  void draw_row(std::size_t index) {
    const std::size_t row = order_[index];
    const RowOutcome& cell = outcome_.cells[row];
    const std::string_view fill = colour_of(outcome_, row);
    const std::string_view ink = fill == colour::kRest ? colour::kInk : fill;
    const double top = top_ + row_height_ * static_cast<double>(index);
    const double middle = top + row_height_ / 2.0;
    const double dots = is_narrow_ ? top + 35.0 : middle + 4.0;
    if (index > 0) picture_.line({0.0, top - 2.0}, {width_, top - 2.0}, colour::kRule, 1.0);
    picture_.text({0.0, is_narrow_ ? top + 13.0 : middle - 8.0},
                  shortened(row_name(outcome_.rows[row]), is_narrow_ ? 30 : 24),
                  {.size = is_narrow_ ? 14.0 : 15.0, .fill = ink, .is_bold = true});
    if (!is_narrow_) {
      picture_.text({0.0, middle + 8.0}, shortened(outcome_.rows[row].name, 28),
                    {.size = 11.5, .fill = colour::kMuted, .is_mono = true});
    }
    draw_interval(cell, dots + (is_narrow_ ? 9.0 : 13.0), fill);
    draw_dots(row, dots, fill);
    draw_ratio(cell, top, middle, ink);
  }

  void draw_interval(const RowOutcome& cell, double y, std::string_view fill) {
    if (!cell.over_best || !std::isfinite(cell.over_best->high)) return;
    const double begin = x_of(best_ * cell.over_best->low);
    picture_.box({begin, y - 3.0}, x_of(best_ * cell.over_best->high) - begin, 6.0,
                 {.fill = kBar, .radius = 2.0});
    picture_.box({x_of(cell.seconds) - 1.5, y - 6.0}, 3.0, 12.0, {.fill = fill});
  }

  // Dots that would overlap are stacked, so that five equal seeds are seen as five. Runs that
  // missed the target are hollow, at the end.
  void draw_dots(std::size_t row, double y, std::string_view fill) {
    std::vector<double> times = outcome_.rows[row].reached_seconds;
    std::ranges::sort(times);
    std::vector<std::pair<double, int>> placed;
    const auto level_at = [&](double x) {
      int level = 0;
      while (std::ranges::any_of(placed, [&](const auto& dot) {
        return dot.second == level && std::abs(dot.first - x) <= 8.0;
      })) {
        ++level;
      }
      placed.emplace_back(x, level);
      return level;
    };
    const double step = is_narrow_ ? 5.0 : 8.0;
    for (const double seconds : times) {
      const double x = x_of(seconds);
      picture_.dot({x, y - step * level_at(x)}, is_narrow_ ? 4.0 : 4.5, fill, colour::kPaper,
                   short_seconds(seconds) + " s");
    }
    const int missed = outcome_.rows[row].done - outcome_.rows[row].reached;
    for (int run = 0; run < missed; ++run) {
      const double x = right() + 4.0;
      picture_.dot({x, y - step * level_at(x)}, 3.5, colour::kPaper, fill, "missed the target");
    }
  }

  void draw_ratio(const RowOutcome& cell, double top, double middle, std::string_view ink) {
    std::string ratio = cell.ratio > 0.0 ? ratio_text(cell.ratio) + "×"
                                         : fmt::format("{} of {}", cell.reached, cell.runs);
    if (cell.state == RowState::kWinner) ratio = "winner";
    if (cell.state == RowState::kTie) ratio += " · tie";
    if (cell.state == RowState::kBusy) ratio = "busy";
    std::string interval = cell.over_best ? interval_text(*cell.over_best) : "";
    if (!interval.empty()) interval.erase(0, 1);
    const TextStyle bold{.size = 15.0, .fill = ink, .anchor = "end", .is_bold = true};
    if (is_narrow_) {
      const std::string text = interval.empty() ? ratio : ratio + " " + interval;
      picture_.text({width_, top + 13.0}, text, {.size = 13.0, .anchor = "end"});
      return;
    }
    picture_.text({width_, middle - 5.0}, ratio, bold);
    picture_.text({width_, middle + 13.0}, interval,
                  {.size = 13.0, .fill = colour::kMuted, .anchor = "end"});
  }

  const Outcome& outcome_;
  const FigureForm form_;
  const bool is_narrow_;
  const std::vector<std::size_t> order_;
  const double width_;
  const double top_;
  const double row_height_;
  Picture picture_;
  double best_ = 1.0;
  double low_ = 1.0;
  double high_ = 1.0;
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

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Returns the accuracy of a run at a time, between its evaluations on a line; empty after the last.
std::optional<double> accuracy_at(const RunResult& run, double seconds, double chance) {
  double time = 0.0;
  double accuracy = chance;
  for (const CurvePoint& point : run.curve) {
    if (point.seconds >= seconds) {
      const double span = point.seconds - time;
      const double share = span > 0.0 ? (seconds - time) / span : 1.0;
      return accuracy + share * (point.accuracy - accuracy);
    }
    time = point.seconds;
    accuracy = point.accuracy;
  }
  return std::nullopt;
}

class AccuracyFigure {
 public:
  AccuracyFigure(const Outcome& outcome, FigureForm form, double height)
      : outcome_(outcome),
        form_(form),
        is_narrow_(form == FigureForm::kNarrow),
        best_(best_of_kinds(outcome)),
        width_(is_narrow_ ? 358.0 : 440.0),
        height_(height),
        picture_(width_, "Accuracy while training", "") {
    double slowest = 0.0;
    for (const std::size_t row : best_) slowest = std::max(slowest, outcome.cells[row].seconds);
    double end = 0.0;
    for (const ComparedVariant& variant : outcome.comparison.variants) {
      for (const ComparedRun& run : variant.runs) {
        if (run.is_done() && !run.result->curve.empty()) {
          end = std::max(end, run.result->curve.back().seconds);
        }
      }
    }
    end_ = std::min(2.6 * slowest, end);
    check(end_ > 0.0, "a run that reached the target has an evaluation after its start");
    const double target = outcome.comparison.target_accuracy.value_or(1.0);
    lowest_ = std::max(0.0, std::floor((target - 0.25) * 10.0) / 10.0);
  }

  std::string draw() {
    draw_frame();
    constexpr std::array<std::string_view, 3> kDashes = {"", "7 3", "2 3"};
    for (std::size_t i = best_.size(); i-- > 0;) draw_curve(best_[i], kDashes.at(i));
    for (std::size_t i = 0; i < best_.size(); ++i) {
      const double y = bottom() - 30.0 - 20.0 * static_cast<double>(best_.size() - 1 - i);
      const double x = left() + (width_ - left()) * 0.4;
      const std::string_view stroke = colour_of(outcome_, best_[i]);
      picture_.line({x, y}, {x + 30.0, y}, stroke, 2.4, kDashes.at(i));
      const VariantSummary& row = outcome_.rows[best_[i]];
      picture_.text({x + 38.0, y + 4.5},
                    shortened(is_narrow_ ? short_name(row) : row_name(row), is_narrow_ ? 18 : 22),
                    {.size = 13.0,
                     .fill = stroke == colour::kRest ? colour::kInk : stroke,
                     .is_bold = stroke == colour::kAnswer});
    }
    return finished(picture_, height_, form_);
  }

 private:
  double left() const { return 40.0; }
  double top() const { return is_narrow_ ? 24.0 : 34.0; }
  double bottom() const { return height_ - (is_narrow_ ? 34.0 : 40.0); }
  double x_of(double seconds) const { return left() + seconds / end_ * (width_ - left() - 8.0); }
  double y_of(double accuracy) const {
    const double place = (std::max(accuracy, lowest_) - lowest_) / (1.0 - lowest_);
    return bottom() - place * (bottom() - top());
  }

  void draw_frame() {
    picture_.text({0.0, 12.0},
                  fmt::format("{} accuracy, %, best of each kind",
                              capitalised(std::string(outcome_.comparison.watched_split()))),
                  {.size = is_narrow_ ? 12.0 : 13.0, .fill = colour::kMuted});
    if (!is_narrow_) picture_.line({0.0, 24.0}, {width_, 24.0}, colour::kInk, 1.0);
    for (double accuracy = lowest_; accuracy < 1.001; accuracy += 0.1) {
      picture_.line({left(), y_of(accuracy)}, {width_ - 8.0, y_of(accuracy)}, kGrid, 1.0);
      picture_.text({left() - 8.0, y_of(accuracy) + 4.0},
                    fmt::format("{:.0f}", std::round(100.0 * accuracy)),
                    {.size = 12.0, .fill = colour::kMuted, .anchor = "end"});
    }
    const double target = outcome_.comparison.target_accuracy.value_or(1.0);
    picture_.line({left(), y_of(target)}, {width_ - 8.0, y_of(target)}, colour::kInk, 1.2, kDashed);
    picture_.text({width_ - 8.0, y_of(target) + 14.0}, "target " + target_text(outcome_.comparison),
                  {.size = 12.0, .anchor = "end"});
    const double step = round_step(end_, 6);
    for (int i = 0; i * step <= end_; ++i) {
      const double seconds = i * step;
      picture_.text({x_of(seconds), bottom() + 17.0}, exact_text(seconds),
                    {.size = 12.0, .fill = colour::kMuted, .anchor = "middle"});
    }
    picture_.text({width_ - 8.0, height_ - 3.0}, "seconds",
                  {.size = 12.0, .fill = colour::kMuted, .anchor = "end"});
  }

  void draw_curve(std::size_t row, std::string_view dash) {
    constexpr int kPoints = 90;
    const double chance = outcome_.comparison.chance ? outcome_.comparison.chance->share : 0.0;
    std::vector<Point> points;
    for (int i = 0; i <= kPoints; ++i) {
      const double seconds = end_ * i / kPoints;
      std::vector<double> values;
      for (const ComparedRun& run : outcome_.comparison.variants[row].runs) {
        if (!run.is_done()) continue;
        const auto accuracy = accuracy_at(*run.result, seconds, chance);
        if (accuracy) values.push_back(*accuracy);
      }
      const auto runs = static_cast<std::size_t>(outcome_.rows[row].done);
      if (values.empty() || values.size() < runs) break;
      const double value = median_of(std::move(values));
      if (value > lowest_) points.push_back({x_of(seconds), y_of(value)});
    }
    const std::string_view stroke = colour_of(outcome_, row);
    picture_.curve(points, stroke, stroke == colour::kAnswer ? 2.6 : 2.0, dash);
    picture_.dot({x_of(outcome_.cells[row].seconds),
                  y_of(outcome_.comparison.target_accuracy.value_or(1.0))},
                 4.5, stroke, colour::kPaper);
  }

  const Outcome& outcome_;
  const FigureForm form_;
  const bool is_narrow_;
  const std::vector<std::size_t> best_;
  const double width_;
  const double height_;
  Picture picture_;
  double end_ = 1.0;
  double lowest_ = 0.0;
};

}  // namespace

std::string time_figure(const Outcome& outcome, FigureForm form) {
  return outcome.soonest ? TimeFigure(outcome, form).draw() : "";
}

std::string accuracy_figure(const Outcome& outcome, FigureForm form) {
  if (!outcome.soonest) return "";
  constexpr double kRow = 60.0;
  const double wide = std::max(250.0, 68.0 + kRow * static_cast<double>(outcome.rows.size()));
  return AccuracyFigure(outcome, form, form == FigureForm::kNarrow ? 178.0 : wide).draw();
}

}  // namespace syncopate::bench
