// Plots of learning and speed: the learning curves, the time to the target and the throughput.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/charts.h"
#include "bench/plots/figure.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// One of the four learning curves: which quantities it shows.
struct View {
  std::string title;
  std::string x_title;
  std::string y_title;
  double (*x)(const CurvePoint&);
  double (*y)(const CurvePoint&);
  bool is_accuracy;
};

std::string time_title(const Comparison& comparison) {
  return comparison.has_virtual_clock ? "training time (virtual s)" : "training time (s)";
}

double samples_of(const CurvePoint& point) { return static_cast<double>(point.samples); }
double seconds_of(const CurvePoint& point) { return point.seconds; }
double percent_of(const CurvePoint& point) { return 100.0 * point.accuracy; }
double loss_of(const CurvePoint& point) { return point.loss; }

std::vector<Point> curve_points(const View& view, const RunResult& run) {
  std::vector<Point> points;
  for (const CurvePoint& point : run.curve) points.push_back({view.x(point), view.y(point)});
  return points;
}

// Averages the n-th evaluations of all runs, up to the length of the shortest run.
std::vector<Point> mean_curve(const std::vector<std::vector<Point>>& runs) {
  std::size_t length = runs.empty() ? 0 : runs.front().size();
  for (const auto& run : runs) length = std::min(length, run.size());
  std::vector<Point> points(length);
  for (std::size_t i = 0; i < length; ++i) {
    for (const auto& run : runs) {
      points[i].x += run[i].x / static_cast<double>(runs.size());
      points[i].y += run[i].y / static_cast<double>(runs.size());
    }
  }
  return points;
}

// Adds the thin lines of all runs first and the means last, so that runs never hide a mean.
std::vector<Curve> curves_of(const View& view, const Comparison& comparison) {
  std::vector<Curve> thin;
  std::vector<Curve> thick;
  for (std::size_t series = 0; series < comparison.variants.size(); ++series) {
    std::vector<std::vector<Point>> done;
    for (const ComparedRun& run : comparison.variants[series].runs) {
      if (!run.result) continue;
      const std::vector<Point> points = curve_points(view, *run.result);
      if (run.is_done()) done.push_back(points);
      if (run.has_failed()) thin.push_back({series, CurveStyle::kFailed, points});
    }
    if (done.size() > 1) {
      for (const auto& points : done) thin.push_back({series, CurveStyle::kSeed, points});
    }
    if (!done.empty()) thick.push_back({series, CurveStyle::kMean, mean_curve(done)});
  }
  std::ranges::move(thick, std::back_inserter(thin));
  return thin;
}

// The smallest and the largest finite value that take() was given.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

template <typename Coordinate>
Range range_of(const std::vector<Curve>& curves, Coordinate coordinate) {
  Range range;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) range.take(point.*coordinate);
  }
  return range;
}

Axis axis_of_y(const View& view, Range range, const std::optional<double>& target) {
  if (!view.is_accuracy) return logarithmic_axis(view.y_title, range.low, range.high);
  if (target) range.take(100.0 * *target);
  return percent_axis(view.y_title, range.low, range.high);
}

std::vector<LegendEntry> legend_of(const View& view, const Comparison& comparison,
                                   const std::vector<Curve>& curves) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::vector<LegendEntry> legend;
  const auto has = [&](CurveStyle style) {
    return std::ranges::any_of(curves, [&](const Curve& curve) { return curve.style == style; });
  };
  for (std::size_t series = 0; series < rows.size(); ++series) {
    if (rows[series].ended() > 0) {
      legend.push_back({series_swatch(series), rows[series].name});
    }
  }
  if (has(CurveStyle::kSeed)) legend.push_back({line_swatch("ink seed"), "one seed"});
  if (has(CurveStyle::kFailed))
    legend.push_back({line_swatch("ink seed failed"), "a run that failed"});
  if (view.is_accuracy && comparison.target_accuracy) {
    legend.push_back(
        {line_swatch("reference"), "target, " + percent_text(*comparison.target_accuracy)});
  }
  return legend;
}

std::string caption_of(const Axis& y) {
  if (y.scale == Scale::kLogarithmic) return "The scale of the loss is logarithmic.";
  if (y.scale != Scale::kNearHundred) return "";
  return "The scale is logarithmic in the distance to 100 %: equal steps divide the error by equal "
         "factors.";
}

std::string curve_figure(const View& view, const Comparison& comparison) {
  std::vector<Curve> curves = curves_of(view, comparison);
  const Range x = range_of(curves, &Point::x);
  const Range y = range_of(curves, &Point::y);
  if (x.is_empty() || y.is_empty()) return "";
  LineChart chart{.title = view.title, .x = {}, .y = {}, .curves = {}};
  chart.x = fitting_axis(kPlotWidth - 80.0, [&](int most) {
    return linear_axis(view.x_title, 0.0, x.high, most, false);
  });
  chart.y = axis_of_y(view, y, comparison.target_accuracy);
  const std::vector<LegendEntry> legend = legend_of(view, comparison, curves);
  const std::string caption = caption_of(chart.y);
  if (view.is_accuracy && comparison.target_accuracy) {
    const double target = 100.0 * *comparison.target_accuracy;
    curves.insert(curves.begin(),
                  {0, CurveStyle::kReference, {{chart.x.low, target}, {chart.x.high, target}}});
  }
  chart.curves = std::move(curves);
  return figure_html({view.title, draw(chart), legend, caption});
}

std::string target_note(const VariantSummary& row) {
  if (row.ended() == 0) return "pending";
  if (row.seconds_to_target) {
    return deviation_text(row.seconds_to_target->mean, row.seconds_to_target->deviation, " ± ");
  }
  if (row.done == 0) return "failed";
  if (row.reached == 0) return "not reached";
  return fmt::format("{} of {}", row.reached, count_text(row.ended(), "seed"));
}

// Returns the label with N instead of the number of workers: variants that differ only in this
// number share a line of the throughput plot.
std::string family_of(const ComparedVariant& variant) {
  std::string name = variant.label;
  for (const char* noun : {" workers", " worker"}) {
    const std::string words = fmt::format("{}{}", variant.workers, noun);
    const std::size_t at = name.find(words);
    if (at == std::string::npos) continue;
    const bool is_whole = at == 0 || std::isdigit(static_cast<unsigned char>(name[at - 1])) == 0;
    if (is_whole) return name.replace(at, words.size(), "N workers");
  }
  return name;
}

// Makes an axis with a tick at each number of workers if they are far enough apart to be read.
Axis axis_of_workers(const std::set<int>& counts) {
  constexpr double kRoom = kPlotWidth - 80.0;
  const double most = *counts.rbegin();
  Axis axis = fitting_axis(
      kRoom, [&](int most_ticks) { return counting_axis("workers", 0.0, most, most_ticks); });
  double before = 0.0;
  for (const int count : counts) {
    const double gap = text_width(fmt::format("{}", count)) + 3.0;
    if (kRoom * (count - before) / most < gap) return axis;
    before = count;
  }
  axis.ticks.assign(counts.begin(), counts.end());
  return axis;
}

struct Family {
  std::size_t series = 0;                          // plot series of the family's first variant
  std::map<double, std::vector<double>> measured;  // samples per second by workers
};

std::vector<std::pair<std::string, Family>> families_of(const Comparison& comparison) {
  std::vector<std::pair<std::string, Family>> families;
  const std::vector<VariantSummary> rows = summarise(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].samples_per_second) continue;
    const std::string name = family_of(comparison.variants[i]);
    auto found = std::ranges::find(families, name, &std::pair<std::string, Family>::first);
    if (found == families.end()) {
      families.push_back({name, Family{.series = i, .measured = {}}});
      found = families.end() - 1;
    }
    auto& values = found->second.measured[static_cast<double>(rows[i].workers)];
    for (const double value : rows[i].samples_per_second->values) {
      if (std::isfinite(value)) values.push_back(value);
    }
  }
  return families;
}

// Adds, for variants that differ only in the number of workers, the points of single runs and the
// line through their means. Raises `most` to the largest value.
void add_throughput(const Family& family, std::vector<Curve>& curves, double& most) {
  Curve dots{family.series, CurveStyle::kDots, {}};
  Curve means{family.series, CurveStyle::kMeasured, {}};
  for (const auto& [workers, values] : family.measured) {
    double sum = 0.0;
    for (const double value : values) {
      dots.points.push_back({workers, value});
      sum += value;
      most = std::max(most, value);
    }
    if (!values.empty())
      means.points.push_back({workers, sum / static_cast<double>(values.size())});
  }
  curves.push_back(std::move(dots));
  curves.push_back(std::move(means));
}

// Plots samples per second as bars, for variants that each have one number of workers.
std::string throughput_bars(const std::vector<VariantSummary>& rows) {
  BarChart chart{.title = "Throughput", .axis_title = "throughput (samples/s)", .groups = {}};
  bool has_dots = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].samples_per_second) continue;
    const Sample& speed = *rows[i].samples_per_second;
    Bar bar{.value = speed.mean,
            .deviation = speed.deviation,
            .dots = {},
            .note = short_text(speed.mean),
            .classes = series_classes(i) + " bar"};
    if (speed.values.size() > 1) bar.dots = speed.values;
    has_dots = has_dots || !bar.dots.empty();
    chart.groups.push_back({rows[i].name, {bar}});
  }
  std::vector<LegendEntry> legend = {{box_swatch("s0 bar"), "mean over seeds"}};
  if (has_dots) {
    legend.push_back({whisker_swatch(), "± one standard deviation"});
    legend.push_back({dot_swatch(), "one seed"});
  }
  return figure_html({chart.title, draw(chart), legend, ""});
}

}  // namespace

std::string curve_plots(const Comparison& comparison) {
  const std::string samples = "samples trained";
  const std::string seconds = time_title(comparison);
  const std::string accuracy = fmt::format("{} accuracy (%)", comparison.watched_split());
  const std::string loss = fmt::format("{} loss (nats per sample)", comparison.watched_split());
  const std::string split = comparison.watched_split() == "test" ? "Test" : "Validation";
  std::string html;
  for (const View& view :
       {View{split + " accuracy against samples", samples, accuracy, samples_of, percent_of, true},
        View{split + " accuracy against time", seconds, accuracy, seconds_of, percent_of, true},
        View{split + " loss against samples", samples, loss, samples_of, loss_of, false},
        View{split + " loss against time", seconds, loss, seconds_of, loss_of, false}}) {
    html += curve_figure(view, comparison);
  }
  return html;
}

std::string target_plot(const Comparison& comparison) {
  if (!comparison.target_accuracy) return "";
  const std::vector<VariantSummary> rows = summarise(comparison);
  const std::string target = percent_text(*comparison.target_accuracy);
  BarChart chart{.title = fmt::format("Time to {} {} accuracy", target, comparison.watched_split()),
                 .axis_title = time_title(comparison),
                 .groups = {}};
  bool reached = false;
  bool has_whiskers = false;
  bool has_dots = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Bar bar{.value = {}, .deviation = {}, .dots = {}, .note = target_note(rows[i]), .classes = ""};
    bar.classes = series_classes(i) + " bar";
    if (rows[i].seconds_to_target) {
      bar.value = rows[i].seconds_to_target->mean;
      bar.deviation = rows[i].seconds_to_target->deviation;
    }
    if (rows[i].ended() > 1) bar.dots = rows[i].reached_seconds;
    has_whiskers = has_whiskers || bar.deviation;
    has_dots = has_dots || !bar.dots.empty();
    reached = reached || !rows[i].reached_seconds.empty();
    chart.groups.push_back({rows[i].name, {bar}});
  }
  if (!reached)
    return "";  // Bars without length would show nothing, and the table already has the fact.
  std::vector<LegendEntry> legend = {{box_swatch("s0 bar"), "mean, if every seed reached it"}};
  if (has_whiskers) legend.push_back({whisker_swatch(), "± one standard deviation"});
  if (has_dots) legend.push_back({dot_swatch(), "one seed"});
  return figure_html({chart.title, draw(chart), legend,
                      "The time is that of the first evaluation at or above the target, without "
                      "interpolation."});
}

std::string throughput_plot(const Comparison& comparison) {
  const auto families = families_of(comparison);
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::set<int> counts;
  for (const VariantSummary& row : rows) {
    if (row.samples_per_second) counts.insert(row.workers);
  }
  if (counts.empty()) return "";
  const bool has_lines = std::ranges::any_of(
      families, [](const auto& family) { return family.second.measured.size() > 1; });
  if (!has_lines) return throughput_bars(rows);
  const auto base = std::ranges::find_if(
      rows, [](const VariantSummary& row) { return row.samples_per_second.has_value(); });
  const double per_worker = base->samples_per_second->mean / base->workers;
  const double widest = *counts.rbegin();
  double most = per_worker * widest;
  std::vector<Curve> curves = {
      {0, CurveStyle::kReference, {{0.0, 0.0}, {widest, per_worker * widest}}}};
  std::vector<LegendEntry> legend;
  for (const auto& [name, family] : families) {
    add_throughput(family, curves, most);
    legend.push_back({series_swatch(family.series), name});
  }
  legend.push_back(
      {line_swatch("reference"), "ideal: proportional to the workers, from " + base->name});
  LineChart chart{
      .title = "Throughput against workers", .x = {}, .y = {}, .curves = std::move(curves)};
  chart.x = axis_of_workers(counts);
  chart.y = linear_axis("throughput (samples/s)", 0.0, most, 6, true);
  return figure_html({chart.title, draw(chart), legend, ""});
}

}  // namespace syncopate::bench
