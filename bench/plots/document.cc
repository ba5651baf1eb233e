#include "bench/plots/document.h"

#include <fmt/format.h>

#include <sstream>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// The style sheet of all report pages, which are light. A picture has its own colours.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light;--ink:#1a1f24;--soft:#56606b;--rule:#d3d9df;--answer:#0b4a7a;--warning:#a34a00}
*{box-sizing:border-box}
body{margin:0;background:#fff;color:var(--ink);font:16px/1.45 "Helvetica Neue",Arial,"Liberation Sans",sans-serif}
main{max-width:1200px;margin:0 auto;padding:30px 40px 48px}
h1{font-size:31px;line-height:1.18;margin:0 0 4px}
h2{break-after:avoid;font-size:1.15rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
a{color:var(--answer)}
.set{margin:0 0 16px;color:var(--soft);font-size:15px}
.answer{border-left:6px solid var(--answer);padding:1px 0 1px 16px;margin:0 0 20px;max-width:900px}
.answer.none{border-color:#6f7984}.answer p{margin:0}
.answer .v{font-size:21px;line-height:1.34;font-weight:700}.answer .a{margin-top:4px}
.two{display:grid;grid-template-columns:650fr 440fr;gap:30px;align-items:start;margin-bottom:8px}
.two~.scroll table{width:100%}
.plot,.wide,.narrow{display:block;max-width:100%;height:auto}
figure .narrow,.say{display:none}
.warn{list-style:none;padding:0;margin:12px 0 0;font-size:14.5px;display:flex;gap:6px 28px;flex-wrap:wrap}
.warn b{color:var(--warning)}
.next{margin:16px 0 0;font-size:15px}
.fold{margin-top:18px;border-top:1px solid var(--rule)}
details{border-bottom:1px solid var(--rule);padding:9px 0}
details p{max-width:46em}
summary{cursor:pointer}summary h2{display:inline;font-size:16px;margin:0;padding:0;border:0}summary span{color:var(--soft)}
.verdict{font-size:1.06rem;max-width:48em;margin:0 0 .5rem;overflow-wrap:anywhere}
.verdict:first-of-type{font-weight:600}
table{border-collapse:collapse;font:.86rem/1.35 system-ui,"DejaVu Sans",Arial,sans-serif;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .55rem;text-align:right;white-space:nowrap;vertical-align:top}
th:first-child,td:first-child{text-align:left;padding-left:0}
thead th{border-bottom:1px solid var(--ink)}
thead small{font-weight:400;color:var(--soft);display:inline-block;max-width:8rem;white-space:normal;overflow-wrap:anywhere}
tbody th{font-weight:400;white-space:normal;min-width:11rem;max-width:26rem;overflow-wrap:anywhere}
tbody tr{border-bottom:1px solid var(--rule)}
tbody small{color:var(--soft)}
.scroll{overflow-x:auto}
.failure td{color:var(--soft);white-space:normal;font-style:italic;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0;font-size:.9rem;max-width:60rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere;min-width:0}
code{font:.85rem/1.4 ui-monospace,"DejaVu Sans Mono",Menlo,monospace;background:#f0f3f5;padding:2px 5px;border-radius:3px;
overflow-wrap:anywhere}
.note{color:var(--soft);font-size:.85rem;margin:.5rem 0 0;overflow-wrap:anywhere;max-width:46em}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:2rem 2.5rem;margin-top:1rem}
figure{margin:0;min-width:0;break-inside:avoid}
.grid figure{max-width:460px}
figcaption{font-weight:600;margin-bottom:.4rem}
@media (max-width:720px){main{padding:12px 16px 32px}h1{font-size:21px}
.set{font-size:13px;margin-bottom:9px;line-height:1.3}
.answer{padding-left:11px;margin-bottom:12px;border-left-width:5px}.answer .v{font-size:16.5px;line-height:1.3}
.answer .a{font-size:14px}.two{grid-template-columns:1fr;gap:8px}figure .wide{display:none}figure .narrow{display:block}
.say{display:block;margin:8px 0 0;padding:0;list-style:none;font-size:13.5px;line-height:1.32}.say li{margin-bottom:5px}}
@media (max-width:600px){.detail{display:none}table{font-size:.76rem}tbody th{min-width:5.2rem}th,td{padding:.3rem .2rem}}
@media print{@page{size:A4 landscape;margin:11mm}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body{font-size:11pt}main{max-width:none;padding:0}.scroll{overflow:visible}.grid{grid-template-columns:1fr 1fr}
.fold{break-before:page;border:0}details::details-content{content-visibility:visible;display:block;height:auto}}
)css";

// Returns the attribute that a <th> or <td> of the column needs, with a blank before it; "" if
// none.
std::string_view class_of(const TableHead& head) {
  return head.is_detail ? " class=\"detail\"" : "";
}

// Returns a cell of the page: its second line, if there is one, in small type.
std::string cell_html(const std::string& cell) {
  const std::size_t end = cell.find('\n');
  if (end == std::string::npos) return html_text(cell);
  return fmt::format("{}<br/><small>{}</small>", html_text(cell.substr(0, end)),
                     html_text(cell.substr(end + 1)));
}

}  // namespace

std::string html_document(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<main>\n<h1>{2}</h1>\n"
      "{3}</main>\n</body>\n</html>\n",
      html_text(title), kStyle, joined_html(std::string(title)), body);
}

std::string plots_html(const std::vector<NamedPlot>& plots) {
  std::string figures;
  for (const NamedPlot& plot : plots) {
    figures += fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}</figure>\n",
                           html_text(plot.picture.title()), plot.picture.element("plot"),
                           note_html(plot.caption));
  }
  return figures.empty() ? "" : fmt::format("<div class=\"grid\">\n{}</div>\n", figures);
}

std::string fact_html(std::string_view name, std::string_view html) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html);
}

std::string note_html(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string html;
  for (std::string line; std::getline(in, line);) {
    html += (html.empty() ? "<p class=\"note\">" : "<br/>\n") + html_text(line);
  }
  return html.empty() ? "" : html + "</p>\n";
}

std::string html_of(const Table& table) {
  std::string head;
  for (const TableHead& one : table.heads) {
    head += fmt::format("<th scope=\"col\"{}>{}", class_of(one), html_text(one.name));
    if (!one.unit.empty()) head += fmt::format("<br/><small>{}</small>", html_text(one.unit));
    head += "</th>";
  }
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
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}"
      "</tbody>\n</table></div>\n",
      head, rows);
}

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

std::string answer_page(const AnswerPage& page) {
  std::string folds;
  for (const Fold& fold : page.folds) {
    if (fold.html.empty()) continue;
    folds += fmt::format("<details><summary><h2>{}</h2> <span>{}</span></summary>\n{}</details>\n",
                         fold.title, html_text(fold.extent), fold.html);
  }
  const std::string html = fmt::format(
      "<p class=\"set\">{}</p>\n<div class=\"answer{}\"><p class=\"v\">{}</p><p class=\"a\">{}</p>"
      "</div>\n{}{}<section class=\"fold\" aria-label=\"Details\">\n{}</section>\n",
      html_text(page.setting), page.has_answer ? "" : " none", joined_html(page.verdict),
      joined_html(page.accuracy), page.figure, page.below, folds);
  return html_document(page.title, html);
}

}  // namespace syncopate::bench
