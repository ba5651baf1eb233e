#include "bench/plots/terminal_table.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kNarrowestName = 14;

// Returns the lines of a cell: its value, and what stands below it.
std::vector<std::string> lines_of_cell(const std::string& cell) {
  const std::size_t end = cell.find('\n');
  if (end == std::string::npos) return {cell};
  return {cell.substr(0, end), cell.substr(end + 1)};
}

// Returns the head and the rows of the table.
std::vector<TableRow> lines_of_table(const Table& table) {
  TableRow head{.name = table.heads[0].name};
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    const TableHead& one = table.heads[i];
    head.cells.push_back(one.unit.empty() ? one.name : one.name + "\n" + one.unit);
  }
  std::vector<TableRow> rows = {std::move(head)};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  return rows;
}

void print_line(std::ostream& out, const std::string& name, std::size_t width,
                const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line = name + std::string(width - std::min(width, width_of(name)), ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += std::string(kColumnGap + widths[i] - width_of(cells[i]), ' ') + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

// Prints the lines of a row: its wrapped name beside the lines of its cells.
void print_row(std::ostream& out, const TableRow& row, std::size_t width,
               const std::vector<std::size_t>& widths) {
  const std::vector<std::string> names = wrapped(plain_text(row.name), width);
  std::vector<std::vector<std::string>> cells;
  std::size_t height = names.size();
  for (const std::string& cell : row.cells) {
    cells.push_back(lines_of_cell(cell));
    height = std::max(height, cells.back().size());
  }
  for (std::size_t i = 0; i < height; ++i) {
    std::vector<std::string> line;
    for (const auto& cell : cells) line.push_back(i < cell.size() ? cell[i] : "");
    print_line(out, i < names.size() ? names[i] : "", width, line, widths);
  }
  for (const std::string& note : row.notes) print_paragraph(out, note, "  ");
}

}  // namespace

void print_columns(std::ostream& out, const Table& table) {
  const std::vector<TableRow> rows = lines_of_table(table);
  std::vector<std::size_t> widths(table.heads.size() - 1);
  std::size_t name = 0;
  for (const TableRow& row : rows) {
    name = std::max(name, width_of(plain_text(row.name)));
    for (std::size_t i = 0; i < widths.size(); ++i) {
      for (const std::string& line : lines_of_cell(row.cells[i])) {
        widths[i] = std::max(widths[i], width_of(line));
      }
    }
  }
  std::size_t others = 0;
  for (const std::size_t width : widths) others += width + kColumnGap;
  // The first column has what the others leave.
  const std::size_t room = kTerminalWidth > others ? kTerminalWidth - others : 0;
  name = std::min(name, std::max(room, kNarrowestName));
  for (const TableRow& row : rows) print_row(out, row, name, widths);
}

void print_paragraph(std::ostream& out, std::string_view text, std::string_view head) {
  constexpr std::size_t kTextWidth = 80;
  if (text.empty()) return;
  std::string before(head);
  for (const std::string& line : wrapped(plain_text(text), kTextWidth - width_of(head))) {
    out << before << line << '\n';
    before = std::string(width_of(head), ' ');
  }
}

}  // namespace syncopate::bench
