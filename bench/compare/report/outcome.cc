#include "bench/compare/report/outcome.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace syncopate::bench {
namespace {

RowOutcome cell_of(const Outcome& column, std::size_t row) {
  const VariantSummary& summary = column.rows[row];
  RowOutcome cell{.reached = summary.reached, .runs = summary.ended() + summary.pending};
  if (summary.done < cell.runs) return cell;
  const std::optional<double> seconds = mean_time(summary);
  if (summary.disturbed > 0) {
    cell.state = RowState::kBusy;
  } else if (!seconds || !column.soonest) {
    cell.state = RowState::kMissed;
  } else {
    const std::vector<std::size_t>& winners = column.answer.winners;
    const bool is_taken = std::ranges::find(winners, row) != winners.end();
    cell.state = !is_taken             ? RowState::kSlower
                 : winners.size() == 1 ? RowState::kWinner
                                       : RowState::kTie;
    cell.seconds = *seconds;
    cell.ratio = *seconds / *mean_time(column.rows[*column.soonest]);
    if (row != *column.soonest) cell.over_best = time_ratio(column.claims, row, *column.soonest);
  }
  return cell;
}

}  // namespace

std::vector<std::size_t> sorted_rows(const Outcome& outcome) {
  std::vector<std::size_t> order(outcome.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t row) {
    const RowOutcome& cell = outcome.cells[row];
    return cell.ratio > 0.0 ? cell.ratio : std::numeric_limits<double>::infinity();
  });
  return order;
}

Outcome outcome_of(std::string cluster, Comparison comparison) {
  Rows rows = summarise(comparison);
  Claims claims(rows);
  Answer answer = answer_of(comparison, rows, claims);
  Outcome column{.cluster = std::move(cluster),
                 .comparison = std::move(comparison),
                 .rows = std::move(rows),
                 .claims = std::move(claims),
                 .answer = std::move(answer),
                 .cells = {}};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < column.rows.size(); ++row) {
    const std::optional<double> seconds = mean_time(column.rows[row]);
    const bool has_cell = column.rows[row].is_complete() && column.rows[row].disturbed == 0;
    if (!seconds || !has_cell || *seconds >= least) continue;
    least = *seconds;
    column.soonest = row;
  }
  for (std::size_t row = 0; row < column.rows.size(); ++row) {
    column.cells.push_back(cell_of(column, row));
  }
  return column;
}

}  // namespace syncopate::bench
