#include "bench/scaling/scaling_page.h"

#include <fmt/format.h>

#include "bench/plots/document.h"
#include "bench/plots/text.h"
#include "bench/scaling/scaling_plots.h"

namespace syncopate::bench {
namespace {

// Adds narrow columns, and space between a note and the plots, to the common style sheet.
constexpr std::string_view kStyle =
    "th,td{padding:.3rem .55rem}\ntbody small{color:var(--soft)}\n.plots{margin-top:1.8rem}\n";

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

// Puts a range below its median; side by side, the table would be wider than a screen.
std::string cell_html(const std::string& cell) {
  const std::size_t range = cell.find(" [");
  if (range == std::string::npos) return html_text(cell);
  return fmt::format("{}<br/><small>{}</small>", html_text(cell.substr(0, range)),
                     html_text(cell.substr(range + 1)));
}

std::string cells_html(const Table& table) {
  std::string rows;
  for (const TableRow& row : table.rows) {
    rows += "<tr><th scope=\"row\">" + html_text(row.name);
    for (const std::string& note : row.notes) {
      rows += fmt::format("<br/><small>{}</small>", html_text(note));
    }
    rows += "</th>";
    for (const std::string& cell : row.cells) rows += fmt::format("<td>{}</td>", cell_html(cell));
    rows += "</tr>\n";
  }
  return table_html(table.heads, rows);
}

std::string section_html(const ScalingTable& table) {
  const std::string plots = scaling_throughput_plot(table) + scaling_efficiency_plot(table);
  return fmt::format(
      "<h2>{}</h2>\n{}{}{}{}", html_text(table.model), cells_html(scaling_cells(table)),
      note_html(scaling_note(table)), note_html(table.conditions),
      plots.empty() ? "" : fmt::format("<div class=\"grid plots\">\n{}</div>\n", plots));
}

}  // namespace

std::string scaling_page(const ScalingReport& report) {
  std::string html;
  for (const ScalingTable& table : report.tables) {
    html += fmt::format("<p class=\"verdict\">{}</p>\n", html_text(scaling_verdict(table)));
  }
  html += facts_html(report);
  for (const ScalingTable& table : report.tables) html += section_html(table);
  return html_document("Scaling with replicas and threads", kStyle, html);
}

void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report) {
  write_whole(path, scaling_page(report));
}

}  // namespace syncopate::bench
