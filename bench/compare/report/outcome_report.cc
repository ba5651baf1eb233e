#include "bench/compare/report/outcome_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/terminal_table.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kTextWidth = 80;

std::string times_the_best(const RowOutcome& cell) {
  switch (cell.state) {
    case RowState::kWinner:
      return "winner";
    case RowState::kTie:
      return ratio_text(cell.ratio) + " tie";
    case RowState::kSlower:
      return ratio_text(cell.ratio) + (cell.over_best ? interval_text(*cell.over_best) : "");
    default:
      return "-";
  }
}

std::string time_cell(const RowOutcome& cell) {
  switch (cell.state) {
    case RowState::kMissed:
      return fmt::format("{} of {}", cell.reached, cell.runs);
    case RowState::kBusy:
      return "busy";
    case RowState::kNoResult:
      return "failed";
    default:
      return short_seconds(cell.seconds);
  }
}

std::vector<std::string> notes_of(const VariantSummary& row) {
  std::vector<std::string> notes;
  for (const std::string& failure : row.failures) notes.push_back("failed, " + failure);
  notes.insert(notes.end(), row.notes.begin(), row.notes.end());
  if (row.pending > 0) notes.push_back("pending: " + count_text(row.pending, "run"));
  return notes;
}

}  // namespace

Table outcome_table(const Outcome& outcome) {
  Table table;
  table.heads = {{"", "", false},
                 {"s to " + target_text(outcome.comparison), "", false},
                 {"times the best", "", false},
                 {"accuracy, %", "", false}};
  for (const std::size_t row : sorted_rows(outcome)) {
    const VariantSummary& summary = outcome.rows[row];
    table.rows.push_back(
        {.name = summary.name,
         .cells = {time_cell(outcome.cells[row]), times_the_best(outcome.cells[row]),
                   summary.accuracy ? decimal_text(100.0 * summary.accuracy->mean, 1) : "-"},
         .notes = notes_of(summary)});
  }
  return table;
}

void print_paragraph(std::ostream& out, const std::string& text, const std::string& head) {
  if (text.empty()) return;
  std::string name = head;
  const std::size_t indent = width_of(head);
  for (const std::string& line : wrapped(plain_text(text), kTextWidth - indent)) {
    out << name << line << '\n';
    name = std::string(indent, ' ');
  }
}

void print_outcome(std::ostream& out, const Outcome& outcome) {
  print_columns(out, outcome_table(outcome));
  print_paragraph(out, setting_sentence(outcome));
  const std::vector<ShortWarning> warnings = short_warnings(outcome);
  if (!warnings.empty()) out << '\n';
  for (const ShortWarning& warning : warnings) {
    constexpr std::size_t kSubject = 12;
    print_paragraph(
        out, warning.text,
        warning.subject +
            std::string(kSubject - std::min<std::size_t>(kSubject, warning.subject.size()), ' '));
  }
  out << '\n';
  print_paragraph(out, verdict_sentence(outcome));
  print_paragraph(out, accuracy_sentence(outcome));
  print_paragraph(out, next_sentence(outcome));
}

}  // namespace syncopate::bench
