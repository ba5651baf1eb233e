#include "bench/compare/report/map_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "bench/compare/report/map_figure.h"
#include "bench/compare/report/map_words.h"
#include "bench/compare/report/outcome_report.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/document.h"
#include "bench/plots/picture.h"
#include "bench/plots/terminal_table.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns a cell of the terminal: the ratio with a mark, "2 of 5", "busy" or "failed".
std::string terminal_cell(const RowOutcome& cell) {
  switch (cell.state) {
    case RowState::kWinner:
      return ratio_text(cell.ratio) + "*";
    case RowState::kTie:
      return ratio_text(cell.ratio) + "=";
    case RowState::kSlower:
      return ratio_text(cell.ratio) + " ";
    case RowState::kMissed:
      return fmt::format("{} of {} ", cell.reached, cell.runs);
    case RowState::kBusy:
      return "busy ";
    case RowState::kNoResult:
      return "failed ";
  }
  return "";
}

std::string terminal_line(const std::string& name, const std::vector<std::string>& cells,
                          std::size_t name_width, std::size_t cell_width) {
  std::string line = name + std::string(name_width - std::min(name_width, width_of(name)), ' ');
  for (const std::string& cell : cells) {
    line += std::string(cell_width - std::min(cell_width, width_of(cell)), ' ') + cell;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

constexpr std::string_view kMapStyle = R"css(
:root{color-scheme:light;--paper:#fff;--ink:#1a1f24;--soft:#56606b;--rule:#d3d9df}
body{background:#fff;color:#1a1f24;font:16px/1.45 "Helvetica Neue",Arial,"Liberation Sans",sans-serif}
main{max-width:1200px;padding:30px 40px 48px}
h1{font-size:31px;line-height:1.18;margin:0 0 4px;font-weight:700}
.set{margin:0 0 16px;color:#56606b;font-size:15px}
.answer{border-left:6px solid #0b4a7a;padding:1px 0 1px 16px;margin:0 0 20px;max-width:900px}
.answer p{margin:0}.answer .v{font-size:21px;line-height:1.34;font-weight:700}.answer .a{margin-top:4px}
.map{max-width:none}.wide,.narrow{display:block;max-width:100%;height:auto}
.map .narrow,.say{display:none}
.next{margin:16px 0 0;font-size:15px}
code{background:#f0f3f5;padding:2px 5px;border-radius:3px;overflow-wrap:anywhere}
.fold{margin-top:18px;border-top:1px solid #d3d9df}
details{border-bottom:1px solid #d3d9df;padding:9px 0}
summary{cursor:pointer;font-weight:700}summary span{font-weight:400;color:#56606b}
details p{max-width:46em}
a{color:#0b4a7a}
@media (max-width:720px){main{padding:12px 16px 32px}h1{font-size:21px}
.set{font-size:13px;margin-bottom:9px;line-height:1.3}.answer{padding-left:11px;margin-bottom:12px;border-left-width:5px}
.answer .v{font-size:16.5px;line-height:1.3}.answer .a{font-size:14px}.map .wide{display:none}.map .narrow{display:block}
.say{display:block;margin:8px 0 0;padding:0;list-style:none;font-size:13.5px;line-height:1.32}.say li{margin-bottom:5px}}
@media print{@page{size:A4 landscape;margin:11mm}main{padding:0}.map .wide{display:block}.map .narrow,.say{display:none}
details::details-content{content-visibility:visible;display:block;height:auto}.fold{break-before:page;border:0}}
)css";

// Returns the text as HTML, with numbers joined to their units and intervals in one piece.
std::string joined_html(const std::string& text) {
  std::string html = html_text(text);
  bool is_in_brackets = false;
  std::string joined;
  for (std::size_t i = 0; i < html.size(); ++i) {
    if (html[i] == '(') is_in_brackets = true;
    if (html[i] == ')') is_in_brackets = false;
    const bool is_unit = html[i] == ' ' && i + 1 < html.size() && html[i + 1] == '%';
    joined += html[i] == ' ' && (is_in_brackets || is_unit) ? "&#160;" : std::string(1, html[i]);
  }
  return joined;
}

std::string fold(const std::string& title, const std::string& extent, const std::string& html) {
  return fmt::format("<details><summary>{} <span>{}</span></summary>\n{}</details>\n", title,
                     extent, html);
}

std::string numbers_table(const StrategyMap& map) {
  std::string rows;
  for (const Outcome& column : map.columns) {
    for (std::size_t r = 0; r < column.rows.size(); ++r) {
      const RowOutcome& cell = column.cells[r];
      const std::string over = !cell.over_best || !std::isfinite(cell.over_best->low) ||
                                       !std::isfinite(cell.over_best->high)
                                   ? ""
                                   : fmt::format("{} to {}", ratio_text(cell.over_best->low),
                                                 ratio_text(cell.over_best->high));
      const auto& accuracy = column.rows[r].accuracy;
      rows += fmt::format(
          "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "</tr>\n",
          html_text(column_head(column).name), html_text(row_name(column.rows[r])),
          cell.ratio > 0.0 ? short_seconds(cell.seconds) : html_text(terminal_cell(cell)),
          cell.ratio > 0.0 ? ratio_text(cell.ratio) : "", over,
          accuracy ? decimal_text(100.0 * accuracy->mean, 1) : "");
    }
  }
  return table_html({{"cluster", "", false},
                     {"strategy", "", false},
                     {"seconds", "", false},
                     {"times the best", "", false},
                     {"interval", "", false},
                     {"accuracy, %", "", false}},
                    rows);
}

std::string method_html(const StrategyMap& map) {
  std::string html = fmt::format(
      "<p>A cell is the geometric mean over {} of the simulated seconds until {} accuracy was "
      "reached, over the least of its column. A frame marks the rows that cannot be told apart "
      "from "
      "the soonest: all pairs of a column are tested together at 5 % (Welch's test of the "
      "logarithms, Holm's procedure). A tie is too close to call, not equal.</p>\n",
      count_text(map.seeds(), "seed"), percent_text(map.first().target_accuracy.value_or(0.0)));
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
  std::size_t name_width = 24;
  for (const VariantSummary& row : map.rows()) {
    name_width = std::max(name_width, width_of(row.name) + 2);
  }
  std::size_t cell_width = 9;
  for (const Outcome& column : map.columns) {
    cell_width = std::max(cell_width, width_of(column.cluster) + 1);
  }
  const auto line = [&](const std::string& name, const auto& text) {
    std::vector<std::string> cells;
    for (const Outcome& column : map.columns) cells.push_back(text(column));
    out << terminal_line(name, cells, name_width, cell_width);
  };
  line("times the best, to " + percent_text(map.first().target_accuracy.value_or(0.0)),
       [](const Outcome& column) { return column.cluster + " "; });
  for (std::size_t r = 0; r < map.rows().size(); ++r) {
    line(map.rows()[r].name, [&](const Outcome& column) { return terminal_cell(column.cells[r]); });
  }
  line("seconds of the best", [](const Outcome& column) {
    return column.soonest ? short_seconds(column.cells[*column.soonest].seconds) + " " : "- ";
  });
  out << "* winner, = tie\n\n";
  std::size_t head_width = 0;
  for (const Outcome& column : map.columns) {
    head_width = std::max(head_width, width_of(column.cluster) + 1);
  }
  for (const Outcome& column : map.columns) {
    const ColumnSentence sentence = column_sentence(column);
    print_paragraph(out, sentence.use + " " + sentence.than,
                    column.cluster + std::string(head_width - width_of(column.cluster), ' '));
  }
  out << '\n';
  print_paragraph(out, map_verdict(map));
  print_paragraph(out, map_accuracy(map));
}

std::string map_page(const StrategyMap& map, const std::string& command) {
  std::string sentences;
  for (const Outcome& column : map.columns) {
    const ColumnSentence sentence = column_sentence(column);
    sentences += fmt::format("<li><b>{}:</b> {} {}</li>\n", html_text(column_head(column).name),
                             html_text(sentence.use), joined_html(sentence.than));
  }
  const auto cells = map.columns.size() * map.rows().size();
  const std::string html = fmt::format(
      "<p class=\"set\">{}</p>\n<div class=\"answer\"><p class=\"v\">{}</p><p class=\"a\">{}</p>"
      "</div>\n<figure class=\"map\">\n{}{}</figure>\n<ul class=\"say\">\n{}</ul>\n"
      "<p class=\"next\"><b>Next, your own cluster:</b> <code>syncopate-bench compare --clusters "
      "&apos;mine{{slow-worker=4x,link-rate=1gbit}}&apos; --model file:net.json</code></p>\n"
      "<section class=\"fold\" aria-label=\"Details\">\n{}{}{}</section>\n",
      html_text(map_setting(map)), joined_html(map_verdict(map)), joined_html(map_accuracy(map)),
      wide_map(map), narrow_map(map), sentences,
      fold("All numbers", fmt::format("{} cells with intervals", cells), numbers_table(map)),
      fold("How it was decided", "tests, clusters", method_html(map)),
      fold("Files", "figure and data",
           fmt::format("<p><a href=\"map.svg\">map.svg</a>, <a href=\"map.csv\">map.csv</a></p>\n"
                       "<p><code>{}</code></p>\n",
                       html_text(command))));
  return html_document(map_title(map), kMapStyle, html);
}

std::string map_csv(const StrategyMap& map) {
  std::string text = "cluster,variant,seconds_to_target,ratio,low,high,reached,runs,state\n";
  for (const Outcome& column : map.columns) {
    for (std::size_t r = 0; r < column.rows.size(); ++r) {
      const RowOutcome& cell = column.cells[r];
      constexpr const char* kStates[] = {"winner", "tie", "slower", "missed", "busy", "no result"};
      const TimeRatio over = cell.over_best.value_or(TimeRatio{.low = NAN, .high = NAN});
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(column.cluster),
                          csv_field(column.rows[r].name),
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
  write_whole(dir / "report.html", map_page(map, command));
  write_whole(dir / "map.svg", map_picture(map));
  write_whole(dir / "map.csv", map_csv(map));
}

}  // namespace syncopate::bench
