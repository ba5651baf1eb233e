#include "bench/scaling/scaling_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "bench/plots/charts.h"
#include "bench/plots/document.h"
#include "bench/plots/text.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

// If the largest number of CPUs is at least this many times the smallest, both axes are
// logarithmic: the ideal remains a straight line, and small numbers are not pressed into a corner.
constexpr double kLogarithmicFrom = 8.0;

struct Series {
  std::string name;
  std::vector<const ScalingRow*> rows;  // rows of a curve, ascending by CPUs
};

// Returns a curve for each strategy and number of threads of a replica. Where the number of
// replicas is fixed, a curve connects numbers of threads instead.
std::vector<Series> series_of(const ScalingTable& table) {
  const bool by_threads = std::ranges::all_of(table.rows, [&](const ScalingRow& row) {
    return row.replicas == table.rows.front().replicas;
  });
  std::vector<Series> all;
  for (const ScalingRow& row : table.rows) {
    if (row.replicas == 1 && !by_threads) continue;
    const std::string name = row.strategy + ", " +
                             (by_threads ? count_text(row.replicas, "replica")
                                         : "replicas of " + count_text(row.threads, "thread"));
    auto series = std::ranges::find(all, name, &Series::name);
    if (series == all.end()) {
      series = all.insert(series, {name, {}});
      // All strategies are equal with one replica, which is the first point of each.
      for (const ScalingRow& first : table.rows) {
        const bool is_first = first.replicas == 1 && first.threads == row.threads;
        if (is_first && !by_threads) series->rows.push_back(&first);
      }
    }
    series->rows.push_back(&row);
  }
  return all;
}

std::set<double> cpu_counts(const ScalingTable& table) {
  std::set<double> counts;
  for (const ScalingRow& row : table.rows) counts.insert(row.cpus());
  return counts;
}

bool is_logarithmic(const std::set<double>& counts) {
  return *counts.rbegin() >= kLogarithmicFrom * *counts.begin();
}

Axis cpu_axis(const std::set<double>& counts) {
  const std::string title = "replicas x threads (CPUs requested)";
  if (!is_logarithmic(counts)) return fitting_axis(title, 0.0, *counts.rbegin(), kRoomForX, true);
  Axis axis = logarithmic_axis(title, *counts.begin(), *counts.rbegin());
  constexpr std::size_t kMostTicks = 8;
  if (counts.size() <= kMostTicks) axis.ticks.assign(counts.begin(), counts.end());
  return axis;
}

// Returns the value to plot for a row, with minimum and maximum.
using Quantity = std::function<Spread(const ScalingRow& row)>;

Curve thin(std::vector<Point> points, std::string_view stroke, std::string_view dash,
           std::string name) {
  return {.points = std::move(points),
          .stroke = stroke,
          .width = 1.0,
          .dash = dash,
          .name = std::move(name)};
}

// Draws the ideal and a line at the number of CPUs of the machine. Each series is a line through
// its medians on top, with a thin line from minimum to maximum at each point.
NamedPlot scaling_plot(const ScalingTable& table, const std::string& title,
                       const std::string& y_title, const Quantity& quantity, Curve ideal) {
  const std::set<double> counts = cpu_counts(table);
  double lowest = ideal.points.back().y;
  double highest = lowest;
  for (const ScalingRow& row : table.rows) {
    lowest = std::min(lowest, quantity(row).min);
    highest = std::max(highest, quantity(row).max);
  }
  // An ideal that rises with the CPUs is straight if both axes have one scale.
  const bool rises = ideal.points.front().y < ideal.points.back().y;
  LineChart chart{.title = title,
                  .x = cpu_axis(counts),
                  .y = is_logarithmic(counts) && rises
                           ? logarithmic_axis(y_title, lowest, highest)
                           : linear_axis(y_title, 0.0, highest, 6, true),
                  .curves = {std::move(ideal)}};
  const double cpus = table.cpus;
  if (cpus >= chart.x.low && cpus < chart.x.high) {
    chart.curves.push_back(
        thin({{cpus, chart.y.low}, {cpus, chart.y.high}}, colour::kGrey, "",
             "all " + count_text(table.cpus, "CPU") + "; oversubscribed to the right"));
  }
  const std::vector<Series> all = series_of(table);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Curve medians = series_curve(i, all[i].name);
    for (const ScalingRow* row : all[i].rows) {
      const Spread value = quantity(*row);
      const double x = row->cpus();
      chart.curves.push_back(thin({{x, value.min}, {x, value.max}}, medians.stroke, "", ""));
      medians.points.push_back({x, value.median});
    }
    chart.curves.push_back(std::move(medians));
  }
  return {"", draw(chart)};
}

std::vector<NamedPlot> scaling_plots(const ScalingTable& table) {
  const std::set<double> counts = cpu_counts(table);
  if (counts.size() < 2) return {};
  const double least = *counts.begin();
  const double most = *counts.rbegin();
  const ScalingRow& base = table.rows.front();
  const double per_cpu = base.samples_per_second.median / base.cpus();
  const auto rate = [](const ScalingRow& row) { return row.samples_per_second; };
  const auto percent = [&](const ScalingRow& row) {
    const double factor = 100.0 * scaling_efficiency(1.0, row, base);
    return Spread{factor * row.speed_up.median, factor * row.speed_up.min,
                  factor * row.speed_up.max};
  };
  const std::string ideal =
      fmt::format("ideal: {}, {}, times the CPUs", base.strategy, combination_text(base));
  return {scaling_plot(
              table, "Throughput", "throughput (samples/s)", rate,
              thin({{least, per_cpu * least}, {most, per_cpu * most}}, colour::kInk, "5 4", ideal)),
          scaling_plot(table, "Efficiency", "efficiency (%)", percent,
                       thin({{least, 100.0}, {most, 100.0}}, colour::kInk, "5 4", "ideal: 100 %"))};
}

std::string facts_html(const ScalingReport& report) {
  const ScalingTable& table = report.tables.front();
  std::string machine = count_text(table.cpus, "CPU");
  if (!report.processor.empty()) machine += ", " + report.processor;
  std::string html = "<dl>\n" + fact_html("Machine", html_text(machine));
  if (!report.command.empty()) {
    html += fact_html("Command", fmt::format("<code>{}</code>", html_text(report.command)));
  }
  return html + "</dl>\n";
}

std::string section_html(const ScalingTable& table) {
  Table cells = scaling_cells(table);
  for (TableRow& row : cells.rows) {
    for (std::string& cell : row.cells) {
      // A range stands below its median; side by side, the table would be wider than a screen.
      const std::size_t range = cell.find(" [");
      if (range != std::string::npos) cell[range] = '\n';
    }
  }
  return fmt::format("<h2>{}</h2>\n{}{}{}{}", html_text(table.model), html_of(cells),
                     note_html(scaling_note(table)), note_html(table.conditions),
                     plots_html(scaling_plots(table)));
}

}  // namespace

std::string scaling_page(const ScalingReport& report) {
  std::string html;
  for (const ScalingTable& table : report.tables) {
    html += fmt::format("<p class=\"verdict\">{}</p>\n", html_text(scaling_verdict(table)));
  }
  html += facts_html(report);
  for (const ScalingTable& table : report.tables) html += section_html(table);
  return html_document("Scaling with replicas and threads", html);
}

void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report) {
  replace_file(path, scaling_page(report));
}

}  // namespace syncopate::bench
