#include "bench/compare/report/page.h"

#include "bench/compare/report/csv.h"
#include "bench/compare/report/document.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/plots.h"
#include "bench/compare/report/table.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/verdict.h"
#include "bench/compare/report/whole_file.h"

namespace syncopate::bench {
namespace {

// A number and its percent sign stay in one line.
std::string kept_together(std::string html) {
  for (std::size_t at = html.find(" %"); at != std::string::npos; at = html.find(" %", at)) {
    html.replace(at, 1, "&#160;");
  }
  return html;
}

std::string verdict_html(const Verdict& verdict) {
  std::string html;
  for (const std::string& sentence : verdict.answer) {
    html += "<p class=\"verdict\">" + kept_together(html_text(sentence)) + "</p>\n";
  }
  if (verdict.remarks.empty()) return html;
  return html + "<p class=\"remarks\">" + kept_together(html_text(paragraph_of(verdict.remarks))) +
         "</p>\n";
}

std::string facts_html(const Comparison& comparison) {
  std::string html = "<dl>\n";
  if (!comparison.budget.empty())
    html += fact_html("Budget of a run", html_text(comparison.budget));
  if (comparison.target_accuracy) {
    html += fact_html("Target", percent_text(*comparison.target_accuracy) + " test accuracy");
  }
  html += fact_html("Clock", comparison.has_virtual_clock
                                 ? "virtual: seconds are simulated, the same on every machine"
                                 : "real: seconds are those of the machine it ran on");
  for (const Machine& machine : comparison.machines) {
    html += fact_html("Machine", html_text(describe(machine)));
  }
  if (const auto use = cpu_use(comparison)) html += fact_html("Workers", html_text(use->words));
  html += fact_html("Trouble", comparison.trouble.empty() ? "none" : html_text(comparison.trouble));
  if (!comparison.command.empty()) {
    html += fact_html("Command", "<code>" + html_text(comparison.command) + "</code>");
  }
  return html + "</dl>\n";
}

std::string results_html(const Comparison& comparison) {
  const Table table = make_table(comparison, " ± ");
  std::string rows;
  for (const TableRow& row : table.rows) {
    rows += "<tr><th scope=\"row\">" + html_text(row.name) + "</th>";
    for (const std::string& cell : row.cells) rows += "<td>" + html_text(cell) + "</td>";
    rows += "</tr>\n";
    for (const std::string& note : row.notes) {
      rows += "<tr class=\"failure\"><td colspan=\"" + std::to_string(table.heads.size()) + "\">" +
              html_text(note) + "</td></tr>\n";
    }
  }
  return table_html(table.heads, rows);
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
  note += " A batch is the samples of one update, of all workers that take part in it.";
  return note +
         " Intervals in the summary are 95 % each, for one comparison at a time: Welch's of "
         "accuracies; of times those of "
         "the factor between two variants, seed by seed, widened by the distance of evaluations. "
         "With fewer than three seeds their range stands in the place of an interval.";
}

}  // namespace

std::string html_page(const Comparison& comparison) {
  std::string html = verdict_html(verdict(comparison)) + facts_html(comparison) +
                     "<h2>Results</h2>\n" + results_html(comparison);
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
  return html_document("Comparison of distribution strategies", "", html);
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
