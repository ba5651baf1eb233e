// Samples per second against the number of workers.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "bench/compare/report/figure.h"
#include "bench/compare/report/line_chart.h"
#include "bench/compare/report/plots.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

// Variants that differ in their number of workers only have one line: their label with N in the
// place of that number.
std::string family_of(const ComparedVariant& variant) {
  std::string name = variant.label;
  for (const char* noun : {" workers", " worker"}) {
    const std::string words = std::to_string(variant.workers) + noun;
    const std::size_t at = name.find(words);
    if (at == std::string::npos) continue;
    const bool is_whole = at == 0 || std::isdigit(static_cast<unsigned char>(name[at - 1])) == 0;
    if (is_whole) return name.replace(at, words.size(), "N workers");
  }
  return name;
}

// A tick at each number of workers, where they stand far enough apart to be read.
Axis axis_of_workers(const std::set<int>& counts) {
  constexpr double kRoom = kPlotWidth - 80.0;
  const double most = *counts.rbegin();
  Axis axis = fitting_axis(
      kRoom, [&](int most_ticks) { return counting_axis("workers", 0.0, most, most_ticks); });
  double before = 0.0;
  for (const int count : counts) {
    const double gap = text_width(std::to_string(count)) + 3.0;
    if (kRoom * (count - before) / most < gap) return axis;
    before = count;
  }
  axis.ticks.assign(counts.begin(), counts.end());
  return axis;
}

struct Family {
  std::size_t series = 0;                          // of its first variant
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

// Points of single runs, and the line through their means.
void add_curves(const Family& family, std::vector<Curve>& curves, double& most) {
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

}  // namespace

std::string throughput_plot(const Comparison& comparison) {
  const auto families = families_of(comparison);
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::set<int> counts;
  for (const VariantSummary& row : rows) {
    if (row.samples_per_second) counts.insert(row.workers);
  }
  if (counts.size() < 2) return "";
  const auto base = std::ranges::find_if(
      rows, [](const VariantSummary& row) { return row.samples_per_second.has_value(); });
  const double per_worker = base->samples_per_second->mean / base->workers;
  const double widest = *counts.rbegin();
  double most = per_worker * widest;
  std::vector<Curve> curves = {
      {0, CurveStyle::kReference, {{0.0, 0.0}, {widest, per_worker * widest}}}};
  std::vector<LegendEntry> legend;
  for (const auto& [name, family] : families) {
    add_curves(family, curves, most);
    legend.push_back({series_swatch(family.series), name});
  }
  legend.push_back({line_swatch("reference"), "ideal: grows with the workers from " + base->name});
  LineChart chart{
      .title = "Throughput against workers", .x = {}, .y = {}, .curves = std::move(curves)};
  chart.x = axis_of_workers(counts);
  chart.y = linear_axis("throughput (samples/s)", 0.0, most, 6, true);
  return figure_html({chart.title, draw(chart), legend, ""});
}

}  // namespace syncopate::bench
