#include "bench/compare/report/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "bench/compare/report/claims.h"
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
  for (const std::string& sentence : verdict.sentences) {
    html += fmt::format("<p class=\"verdict\">{}</p>\n", kept_together(html_text(sentence)));
  }
  std::string rows;
  for (const Warning& warning : verdict.warnings) {
    if (&warning - verdict.warnings.data() == kShownWarnings) break;
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                        html_text(warning.subject), kept_together(html_text(warning.text)));
  }
  if (rows.empty()) return html;
  return html + fmt::format("<table class=\"warnings\"><tbody>\n{}</tbody></table>\n", rows);
}

std::string facts_html(const Comparison& comparison) {
  std::string html = "<dl>\n";
  if (!comparison.model.empty()) html += fact_html("Network", html_text(comparison.model));
  if (!comparison.budget.empty())
    html += fact_html("Budget of a run", html_text(comparison.budget));
  if (comparison.target_accuracy) {
    html +=
        fact_html("Target", fmt::format("{} {} accuracy", percent_text(*comparison.target_accuracy),
                                        comparison.watched_split()));
  }
  html +=
      fact_html("Clock", comparison.has_virtual_clock
                             ? "virtual: seconds are simulated, and the same on one instruction "
                               "set and version of oneDNN"
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

// Returns a cell of the page: its second line, if there is one, in small type.
std::string cell_html(const std::string& cell) {
  const std::size_t end = cell.find('\n');
  if (end == std::string::npos) return html_text(cell);
  return fmt::format("{}<br/><small>{}</small>", html_text(cell.substr(0, end)),
                     html_text(cell.substr(end + 1)));
}

std::string results_html(const Comparison& comparison) {
  const Table table = make_table(comparison, "± ");
  std::string rows;
  for (const TableRow& row : table.rows) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(row.name));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      rows += fmt::format("<td{}>{}</td>", class_of(table.heads[i + 1]), cell_html(row.cells[i]));
    }
    rows += "</tr>\n";
    for (const std::string& note : row.notes) {
      rows += fmt::format("<tr class=\"failure\"><td colspan=\"{}\">{}</td></tr>\n",
                          table.heads.size(), html_text(note));
    }
  }
  return table_html(table.heads, rows);
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
                         summary.samples_per_second, summary.train_loss, summary.test_metric.value,
                         summary.test_loss, comparison.target_accuracy, seconds, samples,
                         summary.staleness_mean, summary.staleness_max, summary.input_wait_fraction,
                         summary.communication_exposed_fraction,
                         run.predicted_communication_seconds, summary.weights_hash);
}

constexpr std::size_t kNarrowestName = 14;
constexpr std::size_t kGap = 2;

// Returns a value with its deviation, if there is one, in a second line.
template <typename Text>
std::string with_deviation(const std::string& value, const std::optional<double>& deviation,
                           std::string_view plus_minus, Text text) {
  return deviation ? fmt::format("{}\n{}{}", value, plus_minus, text(*deviation)) : value;
}

// Returns the cell of the time to the target: "173" and "+- 12", or "2 of 3" and the median if only
// some runs reached the target.
std::string target_cell(const VariantSummary& row, std::string_view plus_minus) {
  if (row.ended() == 0) return "-";
  if (row.seconds_to_target) {
    return with_deviation(short_text(row.seconds_to_target->mean), row.seconds_to_target->deviation,
                          plus_minus, short_text);
  }
  if (row.reached == 0) return "not reached";
  const auto median = censored_median(row.reached_seconds, row.ended());
  return fmt::format("{} of {}{}", row.reached, row.ended(),
                     median ? "\nmedian " + short_text(*median) : "");
}

// Returns the cell of the workers: "4 x 1" for 4 processes with 1 replica each; "4" if only the
// product is known. Its second line marks workers that share CPUs.
std::string workers_cell(const Comparison& comparison, std::size_t index,
                         const VariantSummary& row) {
  const std::string marked =
      shares_cpus(comparison, comparison.variants[index]) ? "\nshared CPUs" : "";
  if (!row.is_distributed) return fmt::format("{}{}", row.workers, marked);
  return *row.is_distributed ? fmt::format("{} x 1{}", row.workers, marked)
                             : fmt::format("1 x {}{}", row.workers, marked);
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
  if (row.disturbed > 0) {
    notes.push_back(fmt::format("busy machine: other programs took up to {} of the CPUs during {}",
                                percent_text(std::round(100.0 * row.most_disturbance) / 100.0),
                                count_text(row.disturbed, "run")));
  }
  if (row.pending > 0) notes.push_back("pending: " + count_text(row.pending, "run"));
  return notes;
}

std::string accuracy_cell(const Sample& accuracy, std::string_view plus_minus) {
  const auto points = [](double share) { return decimal_text(100.0 * share, 2); };
  return with_deviation(points(accuracy.mean), accuracy.deviation, plus_minus, points);
}

// Returns the 95 % interval of the ratio of a row's samples per second to those of the first row;
// "" with too few seeds.
std::string throughput_interval(const Rows& rows, std::size_t index) {
  const auto logarithms = [&](std::size_t row) {
    std::vector<double> values;
    for (const double value : rows[row].samples_per_second->values) {
      values.push_back(std::log(value));
    }
    return values;
  };
  const auto test = welch_test(logarithms(index), logarithms(0));
  if (!test || std::min(rows[0].done, rows[index].done) < kSeedsForAccuracy) return "";
  const double reach = test->reach(0.05);
  return fmt::format("{} to {}", factor_text(std::exp(test->difference - reach)),
                     factor_text(std::exp(test->difference + reach)));
}

// Returns the cell of the speed-up over the first row, with its interval.
std::string speed_up_cell(const Rows& rows, const Claims& claims, std::size_t index) {
  const auto factor = speed_up(rows, index);
  if (!factor) return "-";
  std::string interval;
  if (index > 0 && speed_up_kind(rows) == SpeedUpKind::kThroughput) {
    interval = throughput_interval(rows, index);
  } else if (const auto ratio = claims.difference(0, index, Measure::kTime)) {
    interval = interval_words(*ratio);
  }
  return factor_text(*factor) + (interval.empty() ? "" : "\n" + interval);
}

TableRow row_of(const Comparison& comparison, const Rows& rows, const Claims& claims,
                std::size_t index, std::string_view plus_minus) {
  const VariantSummary& row = rows[index];
  TableRow line{
      .name = row.name, .cells = {workers_cell(comparison, index, row)}, .notes = row_notes(row)};
  line.cells.push_back(updates_cell(row));
  line.cells.push_back(row.accuracy ? accuracy_cell(*row.accuracy, plus_minus) : "-");
  if (comparison.target_accuracy) line.cells.push_back(target_cell(row, plus_minus));
  const auto& speed = row.samples_per_second;
  line.cells.push_back(
      speed ? with_deviation(short_text(speed->mean), speed->deviation, plus_minus, short_text)
            : "-");
  line.cells.push_back(speed_up_cell(rows, claims, index));
  line.cells.push_back(row.staleness ? decimal_text(row.staleness->mean, 2) : "-");
  return line;
}

std::vector<TableHead> heads_of(const Comparison& comparison, const Rows& rows) {
  const bool by_time = speed_up_kind(rows) == SpeedUpKind::kTimeToTarget;
  const bool has_replicas = std::ranges::any_of(
      rows, [](const VariantSummary& row) { return row.is_distributed.has_value(); });
  std::vector<TableHead> heads = {{"strategy", ""},
                                  {"workers", has_replicas ? "x replicas" : "", true},
                                  {"updates", "x batch", true},
                                  {"accuracy", "final, %"}};
  if (comparison.target_accuracy) {
    heads.push_back({"to " + percent_text(*comparison.target_accuracy),
                     comparison.has_virtual_clock ? "virtual s" : "s"});
  }
  heads.push_back({"samples/s", "mean", true});
  heads.push_back({"speed-up", by_time ? "to target" : "samples/s"});
  heads.push_back({"staleness", "mean", true});
  return heads;
}

// Returns the lines of a cell: its value, and its deviation or interval.
std::vector<std::string> lines_of_cell(const std::string& cell) {
  const std::size_t end = cell.find('\n');
  if (end == std::string::npos) return {cell};
  return {cell.substr(0, end), cell.substr(end + 1)};
}

std::vector<std::size_t> cell_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    std::size_t widest = std::max(width_of(table.heads[i].name), width_of(table.heads[i].unit));
    for (const TableRow& row : table.rows) {
      for (const std::string& line : lines_of_cell(row.cells[i - 1])) {
        widest = std::max(widest, width_of(line));
      }
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
  std::string line = name + std::string(width - std::min(width, width_of(name)), ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += std::string(kGap + widths[i] - width_of(cells[i]), ' ') + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

void print_wrapped(std::ostream& out, std::string_view text, std::size_t indent = 0) {
  for (const std::string& line : wrapped(plain_text(text), kTerminalWidth - indent)) {
    out << std::string(indent, ' ') << line << '\n';
  }
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
  for (const std::string& note : row.notes) print_wrapped(out, note, 2);
}

}  // namespace

std::string html_page(const Comparison& comparison) {
  std::string html = verdict_html(verdict(comparison)) + "<h2>Results</h2>\n" +
                     results_html(comparison) +
                     note_html(explanation(comparison, summarise(comparison), "±"));
  const auto add_grid = [&](std::string_view heading, const std::string& figures) {
    if (figures.empty()) return;
    if (!heading.empty()) html += fmt::format("<h2>{}</h2>\n", heading);
    html += fmt::format("<div class=\"grid\">\n{}</div>\n", figures);
  };
  add_grid("", target_plot(comparison) + throughput_plot(comparison));
  html += "<h2>Conditions</h2>\n" + facts_html(comparison);
  add_grid("Learning", curve_plots(comparison));
  html += staleness_plots(comparison) + time_plots(comparison);
  add_grid("Communication", bytes_plot(comparison) + prediction_plot(comparison));
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
  const std::string split(comparison.watched_split());
  for (const ComparedVariant& variant : comparison.variants) {
    const std::int64_t workers = variant.workers;
    for (const ComparedRun& compared : variant.runs) {
      if (!compared.result) continue;
      const auto seed = fmt::format("{}", compared.result->seed);
      for (const CurvePoint& point : compared.result->curve) {
        text += csv_line(variant.label, workers, seed, split, point.step, point.samples,
                         point.seconds, point.loss, point.accuracy, no_value);
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
  const Claims claims(rows);
  Table table{.heads = heads_of(comparison, rows), .rows = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.rows.push_back(row_of(comparison, rows, claims, i, plus_minus));
  }
  return table;
}

void print_table(std::ostream& out, const Comparison& comparison) {
  const Table table = make_table(comparison, "+- ");
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
  for (const TableRow& row : table.rows) print_row(out, row, width, widths);
  for (const std::string& text : machine_lines(comparison)) print_wrapped(out, text);
}

void print_verdict(std::ostream& out, const Comparison& comparison, const Verdict& verdict) {
  for (const std::string& sentence : verdict.sentences) print_wrapped(out << '\n', sentence);
  std::size_t shown = std::min(kShownWarnings, verdict.warnings.size());
  if (shown > 0) out << '\n';
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, width_of(verdict.warnings[i].subject));
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const Warning& warning = verdict.warnings[i];
    std::string name = warning.subject;
    for (const auto& line : wrapped(plain_text(warning.text), kTerminalWidth - width - kGap)) {
      out << name << std::string(width + kGap - width_of(name), ' ') << line << '\n';
      name.clear();
    }
  }
  const std::string notes = explanation(comparison, summarise(comparison), "+-");
  if (!notes.empty()) print_wrapped(out << '\n', notes);
}

}  // namespace syncopate::bench
