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
  if (row.dropped_gradients) {
    notes.push_back(fmt::format("{} % of the gradients came too late and were dropped",
                                decimal_text(100.0 * *row.dropped_gradients, 0)));
  }
  if (row.pending > 0) notes.push_back("pending: " + count_text(row.pending, "run"));
  return notes;
}

std::string accuracy_cell(const Sample& accuracy, std::string_view plus_minus) {
  const auto points = [](double share) { return decimal_text(100.0 * share, 2); };
  return with_deviation(points(accuracy.mean), accuracy.deviation, plus_minus, points);
}

// Returns the 95 % interval of the ratio of a row's samples per second to those of row `base`; ""
// with too few seeds.
std::string throughput_interval(const Rows& rows, std::size_t base, std::size_t index) {
  const auto logarithms = [&](std::size_t row) {
    std::vector<double> values;
    for (const double value : rows[row].samples_per_second->values) {
      values.push_back(std::log(value));
    }
    return values;
  };
  const auto test = welch_test(logarithms(index), logarithms(base));
  if (!test || std::min(rows[base].done, rows[index].done) < kSeedsForAccuracy) return "";
  const double reach = test->reach(0.05);
  return fmt::format("{} to {}", factor_text(std::exp(test->difference - reach)),
                     factor_text(std::exp(test->difference + reach)));
}

// Returns the cell of the speed-up over row `base`, with its interval.
std::string speed_up_cell(const Rows& rows, const Claims& claims, std::size_t base,
                          std::size_t index) {
  const auto factor = speed_up(rows, base, index);
  if (!factor) return "-";
  std::string interval;
  if (index != base && speed_up_kind(rows) == SpeedUpKind::kThroughput) {
    interval = throughput_interval(rows, base, index);
  } else if (const auto ratio = claims.difference(base, index, Measure::kTime)) {
    interval = interval_words(*ratio);
  }
  return factor_text(*factor) + (interval.empty() ? "" : "\n" + interval);
}

// Returns what a speed-up is a ratio of and the least level of the intervals of the column, such as
// "time, >= 99.8 %".
std::string speed_up_unit(const Rows& rows, const Claims& claims) {
  if (speed_up_kind(rows) == SpeedUpKind::kThroughput) return "samples/s, 95 %";
  double most = 0.0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto pair = claims.difference(0, i, Measure::kTime);
    if (pair) most = std::max(most, pair->level);
  }
  constexpr double kRounding = 1e-9;
  return most == 0.0
             ? "time"
             : fmt::format("time, >= {} %",
                           decimal_text(std::floor(1000.0 * (1.0 - most + kRounding)) / 10.0, 1));
}

// Makes the columns of the table of results, each with its cells.
class ResultsTable {
 public:
  ResultsTable(const Comparison& comparison, TableWidth width)
      : comparison_(comparison),
        rows_(summarise(comparison)),
        claims_(rows_),
        is_page_(width == TableWidth::kPage),
        plus_minus_(is_page_ ? "± " : "+- ") {}

  Table make() {
    table_.heads.push_back({"strategy", ""});
    for (const VariantSummary& row : rows_) {
      table_.rows.push_back({.name = row.name, .cells = {}, .notes = row_notes(row)});
    }
    const bool has_replicas = std::ranges::any_of(
        rows_, [](const VariantSummary& row) { return row.is_distributed.has_value(); });
    add({"workers", has_replicas ? "x replicas" : "", true},
        [&](std::size_t row) { return workers_cell(comparison_, row, rows_[row]); });
    add({"updates", "x batch", true}, [&](std::size_t row) { return updates_cell(rows_[row]); });
    add({"accuracy", "final, %"}, [&](std::size_t row) {
      const auto& accuracy = rows_[row].accuracy;
      return accuracy ? accuracy_cell(*accuracy, plus_minus_) : "-";
    });
    if (comparison_.target_accuracy) add_target(percent_text(*comparison_.target_accuracy));
    add({"samples/s", "mean", true}, [&](std::size_t row) {
      const auto& speed = rows_[row].samples_per_second;
      return speed ? with_deviation(short_text(speed->mean), speed->deviation, plus_minus_,
                                    short_text)
                   : "-";
    });
    add_speed_ups();
    add({"staleness", "mean", true}, [&](std::size_t row) {
      const auto& staleness = rows_[row].staleness;
      return staleness ? decimal_text(staleness->mean, 2) : "-";
    });
    return std::move(table_);
  }

 private:
  template <typename Cell>
  void add(TableHead head, Cell cell) {
    table_.heads.push_back(std::move(head));
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      table_.rows[row].cells.push_back(cell(row));
    }
  }

  void add_target(const std::string& target) {
    add({"to " + target, comparison_.has_virtual_clock ? "virtual s" : "s"},
        [&](std::size_t row) { return target_cell(rows_[row], plus_minus_); });
    if (!is_page_) return;
    add({"samples", "to " + target, true}, [&](std::size_t row) {
      const auto& samples = rows_[row].samples_to_target;
      return samples
                 ? fmt::format("{}\nn = {}", decimal_text(samples->mean, 0), samples->values.size())
                 : "-";
    });
  }

  void add_speed_ups() {
    add({"speed-up", speed_up_unit(rows_, claims_)},
        [&](std::size_t row) { return speed_up_cell(rows_, claims_, 0, row); });
    const auto one_worker = fastest_with_one_worker(rows_);
    if (!is_page_ || !one_worker || *one_worker == 0) return;
    constexpr std::size_t kLongestName = 30;
    add({"speed-up", "over " + shortened(rows_[*one_worker].name, kLongestName), true},
        [&](std::size_t row) { return speed_up_cell(rows_, claims_, *one_worker, row); });
  }

  const Comparison& comparison_;
  const Rows rows_;
  const Claims claims_;
  const bool is_page_;
  const std::string_view plus_minus_;
  Table table_;
};

}  // namespace

Table results_table(const Comparison& comparison, TableWidth width) {
  return ResultsTable(comparison, width).make();
}

Table claims_table(const Comparison& comparison) {
  const Rows rows = summarise(comparison);
  const Claims claims(rows);
  Table table{
      .heads = {{"claim", ""}, {"estimate", ""}, {"interval", ""}, {"level", "of interval"}},
      .rows = {}};
  for (const Measure measure : {Measure::kTime, Measure::kAccuracy}) {
    const bool is_time = measure == Measure::kTime;
    for (const PairDifference& pair : claims.all()) {
      if (pair.measure != measure || !pair.is_claimed()) continue;
      const std::size_t more = pair.value > 0.0 ? pair.a : pair.b;
      const std::size_t less = more == pair.a ? pair.b : pair.a;
      const PairDifference difference = *claims.difference(more, less, measure);
      table.rows.push_back(
          {.name = fmt::format("{} {} {}", named(rows[more]),
                               is_time ? "took longer than" : "ended more accurate than",
                               named(rows[less])),
           .cells = {is_time ? factor_text(std::exp(difference.value))
                             : points_text(difference.value) + " points",
                     interval_words(difference), percent_text(1.0 - pair.level)},
           .notes = {}});
    }
  }
  return table;
}

}  // namespace syncopate::bench
