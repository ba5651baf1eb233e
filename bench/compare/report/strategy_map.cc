#include "bench/compare/report/strategy_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

MapCell cell_of(const MapColumn& column, std::size_t row) {
  const VariantSummary& summary = column.rows[row];
  MapCell cell{.reached = summary.reached, .runs = summary.ended() + summary.pending};
  if (summary.done < cell.runs) return cell;
  const std::optional<double> seconds = mean_time(summary);
  if (summary.disturbed > 0) {
    cell.state = CellState::kBusy;
  } else if (!seconds || !column.soonest) {
    cell.state = CellState::kMissed;
  } else {
    const std::vector<std::size_t>& winners = column.answer.winners;
    const bool is_taken = std::ranges::find(winners, row) != winners.end();
    cell.state = !is_taken             ? CellState::kSlower
                 : winners.size() == 1 ? CellState::kWinner
                                       : CellState::kTie;
    cell.seconds = *seconds;
    cell.ratio = *seconds / *mean_time(column.rows[*column.soonest]);
    if (row != *column.soonest) cell.over_best = time_ratio(column.claims, row, *column.soonest);
  }
  return cell;
}

MapColumn column_of(std::string cluster, Comparison comparison) {
  Rows rows = summarise(comparison);
  Claims claims(rows);
  Answer answer = answer_of(comparison, rows, claims);
  MapColumn column{.cluster = std::move(cluster),
                   .comparison = std::move(comparison),
                   .rows = std::move(rows),
                   .claims = std::move(claims),
                   .answer = std::move(answer),
                   .cells = {}};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < column.rows.size(); ++row) {
    const std::optional<double> seconds = mean_time(column.rows[row]);
    if (!seconds || *seconds >= least) continue;
    least = *seconds;
    column.soonest = row;
  }
  for (std::size_t row = 0; row < column.rows.size(); ++row) {
    column.cells.push_back(cell_of(column, row));
  }
  return column;
}

}  // namespace

int StrategyMap::seeds() const noexcept {
  int least = std::numeric_limits<int>::max();
  for (const MapColumn& column : columns) {
    for (const VariantSummary& row : column.rows) least = std::min(least, row.done);
  }
  return least;
}

int StrategyMap::workers() const noexcept {
  return std::ranges::max(rows(), {}, &VariantSummary::workers).workers;
}

StrategyMap make_map(const std::vector<std::string>& clusters,
                     std::vector<Comparison> comparisons) {
  StrategyMap map;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    map.columns.push_back(column_of(clusters.at(i), std::move(comparisons[i])));
    if (std::ranges::equal(map.rows(), map.columns.back().rows, {}, &VariantSummary::name,
                           &VariantSummary::name)) {
      continue;
    }
    throw FileError(
        fmt::format("the comparisons on {} and {} have other variants; repeat the "
                    "comparison in another folder",
                    clusters.front(), clusters[i]));
  }
  return map;
}

}  // namespace syncopate::bench
