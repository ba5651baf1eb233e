#include "bench/compare/report/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/compare/report/claims.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns a value with its deviation, if there is one, in a second line.
template <typename Text>
std::string with_deviation(const std::string& value, const std::optional<double>& deviation,
                           std::string_view plus_minus, Text text) {
  return deviation ? fmt::format("{}\n{}{}", value, plus_minus, text(*deviation)) : value;
}

// Returns the cell of the time to the target: "173" and "+- 12", or "2 of 3" and the median if only
// some runs reached the target.
std::string target_cell(const VariantSummary& row, std::string_view plus_minus) {
  if (row.ended() == 0) return "-";
  if (row.seconds_to_target) {
    return with_deviation(short_text(row.seconds_to_target->mean), row.seconds_to_target->deviation,
                          plus_minus, short_text);
  }
  if (row.reached == 0) return "not reached";
  const auto median = censored_median(row.reached_seconds, row.ended());
  return fmt::format("{} of {}{}", row.reached, row.ended(),
                     median ? "\nmedian " + short_text(*median) : "");
}

// Returns the cell of the workers: "4 x 1" for 4 processes with 1 replica each; "4" if only the
// product is known. Its second line marks workers that share CPUs.
std::string workers_cell(const Comparison& comparison, std::size_t index,
                         const VariantSummary& row) {
  const std::string marked =
      shares_cpus(comparison, comparison.variants[index]) ? "\nshared CPUs" : "";
  if (!row.is_distributed) return fmt::format("{}{}", row.workers, marked);
  return *row.is_distributed ? fmt::format("{} x 1{}", row.workers, marked)
                             : fmt::format("1 x {}{}", row.workers, marked);
}

// Returns the cell of the updates: "1,875 x 32" is 1,875 updates with 32 samples each.
std::string updates_cell(const VariantSummary& row) {
  if (!row.batch()) return "-";
  return fmt::format("{} x {}", decimal_text(row.updates->mean, 0), decimal_text(*row.batch(), 0));
}

std::vector<std::string> row_notes(const VariantSummary& row) {
  std::vector<std::string> notes;
  for (const std::string& failure : row.failures) notes.push_back("failed, " + failure);
  notes.insert(notes.end(), row.notes.begin(), row.notes.end());
  if (row.disturbed > 0) {
    notes.push_back(fmt::format("busy machine: other programs took up to {} of the CPUs during {}",
                                percent_text(std::round(100.0 * row.most_disturbance) / 100.0),
                                count_text(row.disturbed, "run")));
  }
  if (row.pending > 0) notes.push_back("pending: " + count_text(row.pending, "run"));
  return notes;
}

std::string accuracy_cell(const Sample& accuracy, std::string_view plus_minus) {
  const auto points = [](double share) { return decimal_text(100.0 * share, 2); };
  return with_deviation(points(accuracy.mean), accuracy.deviation, plus_minus, points);
}

// Returns the 95 % interval of the ratio of a row's samples per second to those of the first row;
// "" with too few seeds.
std::string throughput_interval(const Rows& rows, std::size_t index) {
  const auto logarithms = [&](std::size_t row) {
    std::vector<double> values;
    for (const double value : rows[row].samples_per_second->values) {
      values.push_back(std::log(value));
    }
    return values;
  };
  const auto test = welch_test(logarithms(index), logarithms(0));
  if (!test || std::min(rows[0].done, rows[index].done) < kSeedsForAccuracy) return "";
  const double reach = test->reach(0.05);
  return fmt::format("{} to {}", factor_text(std::exp(test->difference - reach)),
                     factor_text(std::exp(test->difference + reach)));
}

// Returns the cell of the speed-up over the first row, with its interval.
std::string speed_up_cell(const Rows& rows, const Claims& claims, std::size_t index) {
  const auto factor = speed_up(rows, index);
  if (!factor) return "-";
  std::string interval;
  if (index > 0 && speed_up_kind(rows) == SpeedUpKind::kThroughput) {
    interval = throughput_interval(rows, index);
  } else if (const auto ratio = claims.difference(0, index, Measure::kTime)) {
    interval = interval_words(*ratio);
  }
  return factor_text(*factor) + (interval.empty() ? "" : "\n" + interval);
}

TableRow row_of(const Comparison& comparison, const Rows& rows, const Claims& claims,
                std::size_t index, std::string_view plus_minus) {
  const VariantSummary& row = rows[index];
  TableRow line{
      .name = row.name, .cells = {workers_cell(comparison, index, row)}, .notes = row_notes(row)};
  line.cells.push_back(updates_cell(row));
  line.cells.push_back(row.accuracy ? accuracy_cell(*row.accuracy, plus_minus) : "-");
  if (comparison.target_accuracy) line.cells.push_back(target_cell(row, plus_minus));
  const auto& speed = row.samples_per_second;
  line.cells.push_back(
      speed ? with_deviation(short_text(speed->mean), speed->deviation, plus_minus, short_text)
            : "-");
  line.cells.push_back(speed_up_cell(rows, claims, index));
  line.cells.push_back(row.staleness ? decimal_text(row.staleness->mean, 2) : "-");
  return line;
}

std::vector<TableHead> heads_of(const Comparison& comparison, const Rows& rows) {
  const bool by_time = speed_up_kind(rows) == SpeedUpKind::kTimeToTarget;
  const bool has_replicas = std::ranges::any_of(
      rows, [](const VariantSummary& row) { return row.is_distributed.has_value(); });
  std::vector<TableHead> heads = {{"strategy", ""},
                                  {"workers", has_replicas ? "x replicas" : "", true},
                                  {"updates", "x batch", true},
                                  {"accuracy", "final, %"}};
  if (comparison.target_accuracy) {
    heads.push_back({"to " + percent_text(*comparison.target_accuracy),
                     comparison.has_virtual_clock ? "virtual s" : "s"});
  }
  heads.push_back({"samples/s", "mean", true});
  heads.push_back({"speed-up", by_time ? "to target" : "samples/s"});
  heads.push_back({"staleness", "mean", true});
  return heads;
}

}  // namespace

Table results_table(const Comparison& comparison, TableWidth width) {
  const Rows rows = summarise(comparison);
  const Claims claims(rows);
  const std::string_view plus_minus = width == TableWidth::kPage ? "± " : "+- ";
  Table table{.heads = heads_of(comparison, rows), .rows = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.rows.push_back(row_of(comparison, rows, claims, i, plus_minus));
  }
  return table;
}

}  // namespace syncopate::bench
