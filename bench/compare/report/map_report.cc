#include "bench/compare/report/map_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "bench/compare/report/map_words.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/compare/report/tables.h"
#include "bench/compare/report/terminal_report.h"
#include "bench/plots/document.h"
#include "bench/plots/terminal_table.h"
#include "bench/plots/text.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

// Returns a cell of the terminal: the ratio with a mark, "2 of 5", "busy" or "failed".
std::string terminal_cell(const RowOutcome& cell) {
  if (cell.ratio == 0.0) return state_text(cell) + " ";
  return ratio_text(cell.ratio) + (cell.state == RowState::kWinner ? "*"
                                   : cell.state == RowState::kTie  ? "="
                                                                   : " ");
}

std::string method_html(const StrategyMap& map) {
  std::string html = fmt::format(
      "<p>A cell is the geometric mean over {} of the simulated seconds until {} accuracy was "
      "reached, over the least of its column. A frame marks the rows that were not distinguished "
      "from "
      "the soonest: all pairs of a column are tested together (see its comparison). A tie "
      "is too close to call, not equal.</p>\n",
      count_text(map.seeds(), "seed"), target_text(map.first()));
  html +=
      "<p>The clusters differ in times alone. Weights of synchronous variants without backup "
      "workers are the same in all columns, so these were trained once.</p>\n<dl>\n";
  for (const Outcome& column : map.columns) {
    html += fact_html(column.cluster,
                      fmt::format("<code>{}</code> (<a href=\"{}/report.html\">the "
                                  "comparison</a>)",
                                  html_text(column.comparison.faults), html_text(column.cluster)));
  }
  return html + "</dl>\n";
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

}  // namespace

void print_map(std::ostream& out, const StrategyMap& map) {
  Table table;
  table.heads = {{"times the best, to " + target_text(map.first())}};
  for (const VariantSummary& row : map.rows()) table.rows.push_back({name_with_short(row), {}, {}});
  table.rows.push_back({"seconds of the best", {}, {}});
  std::size_t widest = 0;
  for (const Outcome& column : map.columns) {
    table.heads.push_back({column.cluster + " "});
    for (std::size_t r = 0; r < column.rows.size(); ++r) {
      table.rows[r].cells.push_back(terminal_cell(column.cells[r]));
    }
    table.rows.back().cells.push_back(
        column.soonest ? short_seconds(column.cells[*column.soonest].seconds) + " " : "- ");
    widest = std::max(widest, width_of(column.cluster));
  }
  print_columns(out, table);
  out << "* winner, = tie\n\n";
  for (const Outcome& column : map.columns) {
    print_paragraph(out, verdict_sentence(column),
                    column.cluster + std::string(widest + 1 - width_of(column.cluster), ' '));
  }
  if (const auto warning = map_warning(map)) print_facts(out << '\n', {*warning});
  out << '\n';
  print_paragraph(out, map_verdict(map));
  print_paragraph(out, map_accuracy(map));
  print_paragraph(out, map_next(map));
}

std::string map_page(const StrategyMap& map, const std::string& command) {
  std::string sentences;
  std::string numbers;
  for (const Outcome& column : map.columns) {
    const std::string name = html_text(column_head(column).name);
    sentences +=
        fmt::format("<li><b>{}:</b> {}</li>\n", name, joined_html(verdict_sentence(column)));
    numbers += fmt::format("<h3>{}</h3>\n{}", name, html_of(answer_table(column)));
  }
  const std::optional<Fact> warning = map_warning(map);
  return answer_page(
      {.title = question_of(map.columns.front()),
       .setting = map_setting(map),
       .verdict = map_verdict(map),
       .accuracy = map_accuracy(map),
       .figure = fmt::format("<figure>\n{}{}</figure>\n<ul class=\"say\">\n{}</ul>\n",
                             map_figure(map, FigureForm::kWide).element("wide"),
                             map_figure(map, FigureForm::kNarrow).element("narrow"), sentences),
       .below = (warning ? warnings_html({*warning}) : "") +
                "<p class=\"next\"><b>Next, your own cluster:</b> <code>syncopate-bench compare "
                "--clusters &apos;mine{slow-worker=4x,link-rate=1gbit}&apos; --model "
                "file:net.json</code></p>\n",
       .folds = {
           {"All numbers", "seconds, intervals, accuracies", numbers},
           {"How it was decided", "tests, clusters", method_html(map)},
           {"Files", "figure and data",
            fmt::format("<p><a href=\"map.svg\">map.svg</a>, <a href=\"map.csv\">map.csv</a></p>"
                        "\n<p><code>{}</code></p>\n",
                        html_text(command))}}});
}

std::string map_csv(const StrategyMap& map) {
  std::string text =
      "cluster,variant,target_accuracy,target_of,seconds_to_target,ratio,low,high,reached,runs,"
      "state\n";
  const Comparison& first = map.first();
  const std::string target = first.target_accuracy ? csv_number(*first.target_accuracy) : "";
  const std::string target_of =
      first.derived_target ? csv_field(first.derived_target->baseline) : "";
  for (const Outcome& column : map.columns) {
    for (std::size_t r = 0; r < column.rows.size(); ++r) {
      const RowOutcome& cell = column.cells[r];
      constexpr const char* kStates[] = {"winner", "tie",    "slower",  "missed",
                                         "busy",   "failed", "pending", "left out"};
      const TimeRatio over = cell.over_best.value_or(TimeRatio{.low = NAN, .high = NAN});
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(column.cluster),
                          csv_field(column.rows[r].name), target, target_of,
                          cell.ratio > 0.0 ? csv_number(cell.seconds) : "",
                          cell.ratio > 0.0 ? csv_number(cell.ratio) : "", csv_number(over.low),
                          csv_number(over.high), cell.reached, cell.runs,
                          kStates[static_cast<std::size_t>(cell.state)]);
    }
  }
  return text;
}

void write_map_report(const std::filesystem::path& dir, const StrategyMap& map,
                      const std::string& command) {
  replace_file(dir / "report.html", map_page(map, command));
  replace_file(dir / "map.svg", map_figure(map, FigureForm::kWide).file());
  replace_file(dir / "map.csv", map_csv(map));
}

}  // namespace syncopate::bench
