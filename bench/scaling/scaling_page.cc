#include "bench/scaling/scaling_page.h"

#include <algorithm>

#include "bench/compare/report/document.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/whole_file.h"
#include "bench/scaling/scaling_plots.h"

namespace syncopate::bench {
namespace {

// Beside the common sheet: many narrow columns, and plots that follow a note.
constexpr std::string_view kStyle =
    "th,td{padding:.3rem .55rem}\ntbody small{color:var(--soft)}\n.plots{margin-top:1.8rem}\n";

std::string facts_html(const ScalingReport& report) {
  const ScalingTable& table = report.tables.front();
  std::string machine = count_text(table.cpus, "CPU");
  if (!report.processor.empty()) machine += ", " + report.processor;
  std::string html = "<dl>\n" + fact_html("Machine", html_text(machine));
  if (!report.command.empty()) {
    html += fact_html("Command", "<code>" + html_text(report.command) + "</code>");
  }
  return html + "</dl>\n";
}

// A range goes below its median, or the table would be wider than a screen.
std::string cell_html(const std::string& cell) {
  const std::size_t range = cell.find(" [");
  if (range == std::string::npos) return html_text(cell);
  return html_text(cell.substr(0, range)) + "<br/><small>" + html_text(cell.substr(range + 1)) +
         "</small>";
}

std::string cells_html(const Table& table) {
  std::string rows;
  for (const TableRow& row : table.rows) {
    rows += "<tr><th scope=\"row\">" + html_text(row.name);
    for (const std::string& note : row.notes) rows += "<br/><small>" + html_text(note) + "</small>";
    rows += "</th>";
    for (const std::string& cell : row.cells) rows += "<td>" + cell_html(cell) + "</td>";
    rows += "</tr>\n";
  }
  return table_html(table.heads, rows);
}

// A paragraph that keeps its lines.
std::string note_html(std::string_view text) {
  std::string html;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    html += (html.empty() ? "" : "<br/>\n") + html_text(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return "<p class=\"note\">" + html + "</p>\n";
}

std::string section_html(const ScalingTable& table) {
  const std::string plots = scaling_throughput_plot(table) + scaling_efficiency_plot(table);
  std::string html = "<h2>" + html_text(table.model) + "</h2>\n" +
                     cells_html(scaling_cells(table)) + note_html(scaling_note(table)) +
                     note_html(table.conditions);
  if (!plots.empty()) html += "<div class=\"grid plots\">\n" + plots + "</div>\n";
  return html;
}

}  // namespace

std::string scaling_page(const ScalingReport& report) {
  std::string html;
  for (const ScalingTable& table : report.tables) {
    html += "<p class=\"verdict\">" + html_text(scaling_verdict(table)) + "</p>\n";
  }
  html += facts_html(report);
  for (const ScalingTable& table : report.tables) html += section_html(table);
  return html_document("Scaling with replicas and threads", kStyle, html);
}

void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report) {
  write_whole(path, scaling_page(report));
}

}  // namespace syncopate::bench
