#include "bench/compare/report/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/summary.h"
#include "bench/compare/report/verdict.h"
#include "bench/plots/document.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Keeps a number and its percent sign on one line of the page.
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

// A number in a CSV file has all its digits, so that it reads back unchanged.
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
  const Summary& summary = run.summary;
  return head + csv_line(seed, std::string(), summary.steps, summary.samples, summary.seconds,
                         summary.samples_per_second, summary.train_loss, summary.test_accuracy,
                         summary.test_loss, comparison.target_accuracy, seconds, samples,
                         summary.staleness_mean, summary.staleness_max, summary.input_wait_fraction,
                         summary.communication_exposed_fraction,
                         run.predicted_communication_seconds, summary.weights_hash);
}

constexpr std::size_t kNarrowestName = 14;
constexpr std::size_t kGap = 2;

// Returns the cell of the time to the target: "173 +- 12", or "2 of 3" if only some runs reached
// the target.
std::string target_cell(const VariantSummary& row, std::string_view plus_minus) {
  if (row.ended() == 0) return "-";
  if (row.seconds_to_target) {
    return deviation_text(row.seconds_to_target->mean, row.seconds_to_target->deviation,
                          plus_minus);
  }
  if (row.reached == 0) return "not reached";
  return fmt::format("{} of {}", row.reached, row.ended());
}

// Returns the cell of the workers: "4 x 1" for 4 processes with 1 replica each; "4" if only the
// product is known.
std::string workers_cell(const VariantSummary& row) {
  if (!row.is_distributed) return fmt::format("{}", row.workers);
  return *row.is_distributed ? fmt::format("{} x 1", row.workers)
                             : fmt::format("1 x {}", row.workers);
}

// Returns the cell of the updates: "1,875 x 32" is 1,875 updates with 32 samples each.
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

// Returns the width of the first column: what the other columns leave, at least kNarrowestName.
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
      for (const StepMetrics& point : compared.result->training) {
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
