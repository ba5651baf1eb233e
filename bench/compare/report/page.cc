#include "bench/compare/report/page.h"

#include "bench/compare/report/csv.h"
#include "bench/compare/report/plots.h"
#include "bench/compare/report/style.h"
#include "bench/compare/report/table.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/verdict.h"
#include "bench/compare/report/whole_file.h"

namespace syncopate::bench {
namespace {

std::string fact(std::string_view name, const std::string& html) {
  return "<dt>" + std::string(name) + "</dt><dd>" + html + "</dd>\n";
}

// A number and its percent sign stay in one line.
std::string kept_together(std::string html) {
  for (std::size_t at = html.find(" %"); at != std::string::npos; at = html.find(" %", at)) {
    html.replace(at, 1, "&#160;");
  }
  return html;
}

std::string facts_html(const Comparison& comparison) {
  std::string html = "<dl>\n";
  if (!comparison.budget.empty()) html += fact("Budget of a run", html_text(comparison.budget));
  if (comparison.target_accuracy) {
    html += fact("Target", percent_text(*comparison.target_accuracy) + " test accuracy");
  }
  html += fact("Clock", comparison.has_virtual_clock
                            ? "virtual: seconds are simulated, the same on every machine"
                            : "real: seconds are those of the machine it ran on");
  html += fact("Trouble", comparison.trouble.empty() ? "none" : html_text(comparison.trouble));
  if (!comparison.command.empty()) {
    html += fact("Command", "<code>" + html_text(comparison.command) + "</code>");
  }
  return html + "</dl>\n";
}

std::string table_html(const Comparison& comparison) {
  const Table table = make_table(comparison, " ± ");
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const TableHead& head : table.heads) {
    html += "<th scope=\"col\">" + html_text(head.name) +
            (head.unit.empty() ? "" : "<br/><small>" + html_text(head.unit) + "</small>") + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : table.rows) {
    html += "<tr><th scope=\"row\">" + html_text(row.name) + "</th>";
    for (const std::string& cell : row.cells) html += "<td>" + html_text(cell) + "</td>";
    html += "</tr>\n";
    for (const std::string& note : row.notes) {
      html += "<tr class=\"failure\"><td colspan=\"" + std::to_string(table.heads.size()) + "\">" +
              html_text(note) + "</td></tr>\n";
    }
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string table_note(const Comparison& comparison) {
  const bool by_time = speed_up_kind(summarise(comparison)) == SpeedUpKind::kTimeToTarget;
  std::string note =
      "± is one standard deviation over seeds. The speed-up is against the first row, in ";
  note += by_time ? "time to the target" : "samples per second";
  note += ". Staleness is the mean over all gradients; - where replicas keep step.";
  if (comparison.target_accuracy) {
    note += " A time to the target stands only where every seed reached it.";
  }
  return note + " Intervals in the summary are Welch's, 95 % each, for one difference at a time.";
}

}  // namespace

std::string html_page(const Comparison& comparison) {
  const std::string title = "Comparison of distribution strategies";
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";
  html += "<title>" + title + "</title>\n<style>\n" + std::string(style_sheet()) +
          "</style>\n</head>\n<body>\n<main>\n<h1>" + title + "</h1>\n";
  html += "<p class=\"verdict\">" + kept_together(html_text(verdict(comparison))) + "</p>\n";
  html += facts_html(comparison) + "<h2>Results</h2>\n" + table_html(comparison);
  html += "<p class=\"note\">" + html_text(table_note(comparison)) + "</p>\n";
  const std::string learning =
      curve_plots(comparison) + target_plot(comparison) + throughput_plot(comparison);
  if (!learning.empty()) {
    html += "<h2>Learning and speed</h2>\n<div class=\"grid\">\n" + learning + "</div>\n";
  }
  html += staleness_plots(comparison) + time_plots(comparison);
  const std::string traffic = bytes_plot(comparison) + prediction_plot(comparison);
  if (!traffic.empty()) {
    html += "<h2>Communication</h2>\n<div class=\"grid\">\n" + traffic + "</div>\n";
  }
  return html + "</main>\n</body>\n</html>\n";
}

void write_html(const std::filesystem::path& path, const Comparison& comparison) {
  write_whole(path, html_page(comparison));
}

void write_report(const std::filesystem::path& dir, const Comparison& comparison) {
  write_html(dir / "report.html", comparison);
  write_csv(dir / "runs.csv", comparison);
  write_curves_csv(dir / "curves.csv", comparison);
}

}  // namespace syncopate::bench
