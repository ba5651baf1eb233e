#include "bench/scaling_page.h"

#include <algorithm>

#include "bench/compare/report/style.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/whole_file.h"
#include "bench/scaling_plots.h"

namespace syncopate::bench {
namespace {

// Beside the common sheet: many narrow columns, and plots that follow a note.
constexpr std::string_view kStyle =
    "th,td{padding:.3rem .55rem}\ntbody small{color:var(--soft)}\n.plots{margin-top:1.8rem}\n";

std::string fact(std::string_view name, const std::string& html) {
  return "<dt>" + std::string(name) + "</dt><dd>" + html + "</dd>\n";
}

std::string facts_html(const ScalingReport& report) {
  const ScalingTable& table = report.tables.front();
  std::string machine = count_text(table.cpus, "CPU");
  if (!report.processor.empty()) machine += ", " + report.processor;
  std::string html = "<dl>\n" + fact("Machine", html_text(machine));
  if (!report.command.empty()) {
    html += fact("Command", "<code>" + html_text(report.command) + "</code>");
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

std::string table_html(const Table& table) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const TableHead& head : table.heads) {
    html += "<th scope=\"col\">" + html_text(head.name) +
            (head.unit.empty() ? "" : "<br/><small>" + html_text(head.unit) + "</small>") + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : table.rows) {
    html += "<tr><th scope=\"row\">" + html_text(row.name);
    for (const std::string& note : row.notes) html += "<br/><small>" + html_text(note) + "</small>";
    html += "</th>";
    for (const std::string& cell : row.cells) html += "<td>" + cell_html(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
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
                     table_html(scaling_cells(table)) + note_html(scaling_note(table)) +
                     note_html(table.conditions);
  if (!plots.empty()) html += "<div class=\"grid plots\">\n" + plots + "</div>\n";
  return html;
}

}  // namespace

std::string scaling_page(const ScalingReport& report) {
  const std::string title = "Scaling with replicas and threads";
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";
  html += "<title>" + title + "</title>\n<style>\n" + std::string(style_sheet()) +
          std::string(kStyle) + "</style>\n</head>\n<body>\n<main>\n<h1>" + title + "</h1>\n";
  for (const ScalingTable& table : report.tables) {
    html += "<p class=\"verdict\">" + html_text(scaling_verdict(table)) + "</p>\n";
  }
  html += facts_html(report);
  for (const ScalingTable& table : report.tables) html += section_html(table);
  return html + "</main>\n</body>\n</html>\n";
}

void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report) {
  write_whole(path, scaling_page(report));
}

}  // namespace syncopate::bench
