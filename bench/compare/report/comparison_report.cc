#include "bench/compare/report/comparison_report.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/comparison_table.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/summary.h"
#include "bench/compare/report/verdict.h"
#include "bench/plots/document.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Keeps a number and its percent sign on one line.
std::string kept_together(std::string html) {
  for (std::size_t at = html.find(" %"); at != std::string::npos; at = html.find(" %", at)) {
    html.replace(at, 1, "&#160;");
  }
  return html;
}

std::string verdict_html(const Verdict& verdict) {
  std::string html;
  for (const std::string& sentence : verdict.answer) {
    html += fmt::format("<p class=\"verdict\">{}</p>\n", kept_together(html_text(sentence)));
  }
  if (verdict.remarks.empty()) return html;
  return html + fmt::format("<p class=\"remarks\">{}</p>\n",
                            kept_together(html_text(paragraph_of(verdict.remarks))));
}

std::string facts_html(const Comparison& comparison) {
  std::string html = "<dl>\n";
  if (!comparison.budget.empty())
    html += fact_html("Budget of a run", html_text(comparison.budget));
  if (comparison.target_accuracy) {
    html += fact_html("Target", percent_text(*comparison.target_accuracy) + " test accuracy");
  }
  html += fact_html("Clock", comparison.has_virtual_clock
                                 ? "virtual: seconds are simulated and the same on every machine"
                                 : "real: seconds were measured on this machine");
  for (const Machine& machine : comparison.machines) {
    html += fact_html("Machine", html_text(describe(machine)));
  }
  if (const auto use = cpu_use(comparison)) html += fact_html("Workers", html_text(use->words));
  html += fact_html("Fault injection",
                    comparison.faults.empty() ? "none" : html_text(comparison.faults));
  if (!comparison.command.empty()) {
    html += fact_html("Command", fmt::format("<code>{}</code>", html_text(comparison.command)));
  }
  return html + "</dl>\n";
}

std::string results_html(const Comparison& comparison) {
  const Table table = make_table(comparison, " ± ");
  std::string rows;
  for (const TableRow& row : table.rows) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(row.name));
    for (const std::string& cell : row.cells) rows += fmt::format("<td>{}</td>", html_text(cell));
    rows += "</tr>\n";
    for (const std::string& note : row.notes) {
      rows += fmt::format("<tr class=\"failure\"><td colspan=\"{}\">{}</td></tr>\n",
                          table.heads.size(), html_text(note));
    }
  }
  return table_html(table.heads, rows);
}

std::string table_note(const Comparison& comparison) {
  const bool by_time = speed_up_kind(summarise(comparison)) == SpeedUpKind::kTimeToTarget;
  return fmt::format(
      "± is one standard deviation over seeds. The speed-up is relative to the first row, in {}. "
      "Staleness is the mean over all gradients, and - for synchronous variants.{} A batch is the "
      "samples of one update, over all workers that contribute to it. Intervals in the summary "
      "are 95 % each, for one comparison at a time: Welch's interval for accuracies; for times, "
      "the interval of the factor between two variants, seed by seed, widened by the distance "
      "between evaluations. With fewer than three seeds, the range over the seeds replaces the "
      "interval.",
      by_time ? "time to the target" : "samples per second",
      comparison.target_accuracy ? " A row has a time to the target if every seed reached it."
                                 : "");
}

// A number has all its digits, so that it reads back unchanged.
std::string csv_value(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string csv_value(std::int64_t value) { return fmt::format("{}", value); }
std::string csv_value(const std::string& text) { return csv_field(text); }
template <typename T>
std::string csv_value(const std::optional<T>& value) {
  return value ? csv_value(*value) : "";
}

template <typename... Fields>
std::string csv_line(const Fields&... fields) {
  std::string text;
  ((text += csv_value(fields) + ","), ...);
  text.back() = '\n';
  return text;
}

std::string run_line(const Comparison& comparison, const ComparedVariant& variant,
                     const ComparedRun& compared) {
  const std::string status = compared.is_done()      ? "done"
                             : compared.has_failed() ? "failed"
                                                     : "pending";
  const std::int64_t workers = variant.workers;
  std::string head = csv_line(variant.label, workers, compared.file, status);
  head.back() = ',';
  constexpr int kFieldsAfterFailure = 16;
  if (!compared.result) return head + std::string(kFieldsAfterFailure + 1, ',') + "\n";
  const RunResult& run = *compared.result;
  const auto seed = fmt::format("{}", run.seed);
  if (!compared.is_done()) {
    return head + csv_field(seed) + "," + csv_field(*run.failure) +
           std::string(kFieldsAfterFailure, ',') + "\n";
  }
  const auto point =
      comparison.target_accuracy ? time_to_target(run, *comparison.target_accuracy) : std::nullopt;
  const auto seconds = point ? std::optional(point->seconds) : std::nullopt;
  const auto samples = point ? std::optional(point->samples) : std::nullopt;
  return head + csv_line(seed, std::string(), run.steps, run.samples, run.seconds,
                         run.samples_per_second, run.train_loss, run.test_accuracy, run.test_loss,
                         comparison.target_accuracy, seconds, samples, run.staleness_mean,
                         run.staleness_max, run.input_wait_fraction,
                         run.communication_exposed_fraction, run.predicted_communication_seconds,
                         run.weights_hash);
}

}  // namespace

std::string html_page(const Comparison& comparison) {
  std::string html = verdict_html(verdict(comparison)) + facts_html(comparison) +
                     "<h2>Results</h2>\n" + results_html(comparison);
  html += note_html(table_note(comparison));
  const std::string learning =
      curve_plots(comparison) + target_plot(comparison) + throughput_plot(comparison);
  if (!learning.empty()) {
    html += fmt::format("<h2>Learning and speed</h2>\n<div class=\"grid\">\n{}</div>\n", learning);
  }
  html += staleness_plots(comparison) + time_plots(comparison);
  const std::string traffic = bytes_plot(comparison) + prediction_plot(comparison);
  if (!traffic.empty()) {
    html += fmt::format("<h2>Communication</h2>\n<div class=\"grid\">\n{}</div>\n", traffic);
  }
  return html_document("Comparison of distribution strategies", "", html);
}

std::string runs_csv(const Comparison& comparison) {
  std::string text =
      "label,workers,file,status,seed,failure,steps,samples,seconds,samples_per_second,train_loss,"
      "test_accuracy,test_loss,target_accuracy,seconds_to_target,samples_to_target,staleness_mean,"
      "staleness_max,input_wait_fraction,communication_exposed_fraction,"
      "predicted_communication_seconds,weights_hash\n";
  for (const ComparedVariant& variant : comparison.variants) {
    for (const ComparedRun& run : variant.runs) text += run_line(comparison, variant, run);
  }
  return text;
}

std::string curves_csv(const Comparison& comparison) {
  std::string text =
      "label,workers,seed,kind,step,samples,seconds,loss,accuracy,samples_per_second\n";
  const std::optional<double> no_value;
  for (const ComparedVariant& variant : comparison.variants) {
    const std::int64_t workers = variant.workers;
    for (const ComparedRun& compared : variant.runs) {
      if (!compared.result) continue;
      const auto seed = fmt::format("{}", compared.result->seed);
      for (const CurvePoint& point : compared.result->curve) {
        text += csv_line(variant.label, workers, seed, std::string("test"), point.step,
                         point.samples, point.seconds, point.loss, point.accuracy, no_value);
      }
      for (const TrainingPoint& point : compared.result->training) {
        text +=
            csv_line(variant.label, workers, seed, std::string("train"), point.step, point.samples,
                     point.seconds, point.loss, no_value, point.samples_per_second);
      }
    }
  }
  return text;
}

void write_comparison_report(const std::filesystem::path& dir, const Comparison& comparison) {
  write_whole(dir / "report.html", html_page(comparison));
  write_whole(dir / "runs.csv", runs_csv(comparison));
  write_whole(dir / "curves.csv", curves_csv(comparison));
}

}  // namespace syncopate::bench
