#include "bench/compare/report/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kNarrowestName = 14;
constexpr std::size_t kGap = 2;

// "173 +- 12", or "2 of 3" if only some runs reached the target.
std::string target_cell(const VariantSummary& row, std::string_view plus_minus) {
  if (row.ended() == 0) return "-";
  if (row.seconds_to_target) {
    return deviation_text(row.seconds_to_target->mean, row.seconds_to_target->deviation,
                          plus_minus);
  }
  if (row.reached == 0) return "not reached";
  return fmt::format("{} of {}", row.reached, row.ended());
}

// "4 x 1" is 4 processes with 1 replica each; "4" if only the product is known.
std::string workers_cell(const VariantSummary& row) {
  if (!row.is_distributed) return fmt::format("{}", row.workers);
  return *row.is_distributed ? fmt::format("{} x 1", row.workers)
                             : fmt::format("1 x {}", row.workers);
}

// "1,875 x 32" is 1,875 updates with 32 samples each.
std::string updates_cell(const VariantSummary& row) {
  if (!row.batch()) return "-";
  return fmt::format("{} x {}", decimal_text(row.updates->mean, 0), decimal_text(*row.batch(), 0));
}

std::vector<std::string> row_notes(const VariantSummary& row) {
  std::vector<std::string> notes;
  for (const std::string& failure : row.failures) notes.push_back("failed, " + failure);
  notes.insert(notes.end(), row.notes.begin(), row.notes.end());
  if (row.pending > 0) notes.push_back("pending: " + count_text(row.pending, "run"));
  return notes;
}

std::string accuracy_text(const Sample& accuracy, std::string_view plus_minus) {
  const auto deviation =
      accuracy.deviation ? std::optional(100.0 * *accuracy.deviation) : std::nullopt;
  return deviation_text(100.0 * accuracy.mean, deviation, plus_minus, 2);
}

std::string optional_cell(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "-";
}

TableRow row_of(const Rows& rows, std::size_t index, bool has_target, std::string_view plus_minus) {
  const VariantSummary& row = rows[index];
  TableRow line{.name = row.name, .cells = {workers_cell(row)}, .notes = row_notes(row)};
  line.cells.push_back(updates_cell(row));
  line.cells.push_back(row.accuracy ? accuracy_text(*row.accuracy, plus_minus) : "-");
  if (has_target) line.cells.push_back(target_cell(row, plus_minus));
  line.cells.push_back(row.samples_per_second ? short_text(row.samples_per_second->mean) : "-");
  line.cells.push_back(optional_cell(speed_up(rows, index), factor_text));
  line.cells.push_back(row.staleness ? decimal_text(row.staleness->mean, 2) : "-");
  return line;
}

std::vector<TableHead> heads_of(const Comparison& comparison, const Rows& rows) {
  const bool by_time = speed_up_kind(rows) == SpeedUpKind::kTimeToTarget;
  const bool has_replicas = std::ranges::any_of(
      rows, [](const VariantSummary& row) { return row.is_distributed.has_value(); });
  std::vector<TableHead> heads = {{"strategy", ""},
                                  {"workers", has_replicas ? "x replicas" : ""},
                                  {"updates", "x batch"},
                                  {"accuracy", "final, %"}};
  if (comparison.target_accuracy) {
    heads.push_back({"to " + percent_text(*comparison.target_accuracy),
                     comparison.has_virtual_clock ? "virtual s" : "s"});
  }
  heads.push_back({"samples/s", "mean"});
  heads.push_back({"speed-up", by_time ? "to target" : "samples/s"});
  heads.push_back({"staleness", "mean"});
  return heads;
}

std::vector<std::size_t> cell_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    std::size_t widest = std::max(width_of(table.heads[i].name), width_of(table.heads[i].unit));
    for (const TableRow& row : table.rows) {
      widest = std::max(widest, width_of(row.cells[i - 1]));
    }
    widths.push_back(widest);
  }
  return widths;
}

// The width of the first column: what the other columns leave, at least kNarrowestName.
std::size_t name_width(const Table& table, const std::vector<std::size_t>& widths) {
  std::size_t others = 0;
  for (const std::size_t width : widths) others += width + kGap;
  std::size_t widest = width_of(table.heads[0].name);
  for (const TableRow& row : table.rows) widest = std::max(widest, width_of(plain_text(row.name)));
  const std::size_t room = kTerminalWidth > others ? kTerminalWidth - others : 0;
  return std::min(widest, std::max(room, kNarrowestName));
}

void print_line(std::ostream& out, const std::string& name, std::size_t width,
                const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  out << name << std::string(width - std::min(width, width_of(name)), ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    out << std::string(kGap + widths[i] - width_of(cells[i]), ' ') << cells[i];
  }
  out << '\n';
}

}  // namespace

Table make_table(const Comparison& comparison, std::string_view plus_minus) {
  const Rows rows = summarise(comparison);
  Table table{.heads = heads_of(comparison, rows), .rows = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.rows.push_back(row_of(rows, i, comparison.target_accuracy.has_value(), plus_minus));
  }
  return table;
}

void print_table(std::ostream& out, const Comparison& comparison) {
  const Table table = make_table(comparison, " +- ");
  const std::vector<std::size_t> widths = cell_widths(table);
  const std::size_t width = name_width(table, widths);
  std::vector<std::string> names;
  std::vector<std::string> units;
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    names.push_back(table.heads[i].name);
    units.push_back(table.heads[i].unit);
  }
  print_line(out, table.heads[0].name, width, names, widths);
  print_line(out, table.heads[0].unit, width, units, widths);
  for (const TableRow& row : table.rows) {
    const std::vector<std::string> pieces = wrapped(plain_text(row.name), width);
    print_line(out, pieces.front(), width, row.cells, widths);
    for (std::size_t i = 1; i < pieces.size(); ++i) out << pieces[i] << '\n';
    for (const std::string& note : row.notes) {
      for (const auto& line : wrapped(plain_text(note), kTerminalWidth - 2)) {
        out << "  " << line << '\n';
      }
    }
  }
  for (const std::string& text : machine_lines(comparison)) {
    for (const auto& line : wrapped(plain_text(text), kTerminalWidth)) out << line << '\n';
  }
}

}  // namespace syncopate::bench
