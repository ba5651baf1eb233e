#include "bench/plots/document.h"

#include <fmt/format.h>

#include <span>

#include "bench/plots/text.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

// The style sheet of all report pages. Classes s0 to s6 colour series, p0 to p4 the parts of a
// worker's time. The colours of series can be told apart by colour-blind readers; on a dark ground
// the two darkest are lighter. Source: M. Okabe, K. Ito, Color Universal Design (2008).
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1c1c1c;--soft:#5a5a5a;--rule:#dcdcdc;--blue:#0072b2;--red:#d55e00;
--green:#009e73;--purple:#b5588f;--orange:#e69f00;--sky:#56b4e9;--grey:#6e6e6e;--rest:#b4b4b4}
@media (prefers-color-scheme:dark){:root{--paper:#16181a;--ink:#e6e6e6;--soft:#a6a6a6;--rule:#383b3e;--blue:#4aa3df;
--red:#f0813a;--green:#22b98d;--purple:#d98fbb;--orange:#e9ab24;--sky:#8fd0f5;--grey:#a9a9a9;--rest:#5c6064}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 Charter,"Bitstream Charter",Georgia,serif}
main{max-width:1160px;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .75rem;font-weight:600}
h2{break-after:avoid;font-size:1.15rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule);font-weight:600}
.verdict{font-size:1.06rem;max-width:48em;margin:0 0 .5rem;overflow-wrap:anywhere}
.verdict:first-of-type{font-weight:600}
table.warnings{max-width:60rem;margin:1rem 0 0}
.warnings th,.warnings td{text-align:left;white-space:normal;overflow-wrap:anywhere;padding:.2rem .8rem .2rem 0}
.warnings tbody th{min-width:7rem;color:var(--red)}
td small{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0;font-size:.9rem;max-width:60rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere;min-width:0}
code{font:.85rem/1.4 ui-monospace,"DejaVu Sans Mono",Menlo,monospace}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font:.86rem/1.35 system-ui,"DejaVu Sans",Arial,sans-serif;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .55rem;text-align:right;white-space:nowrap;vertical-align:top}
th:first-child,td:first-child{text-align:left;padding-left:0}
tbody th{font-weight:400;white-space:normal;min-width:11rem;max-width:26rem;overflow-wrap:anywhere}
thead th{font-weight:600;border-bottom:1px solid var(--ink)}
thead small{font-weight:400;color:var(--soft);display:inline-block;max-width:8rem;white-space:normal;overflow-wrap:anywhere}
tbody tr{border-bottom:1px solid var(--rule)}
.failure td{color:var(--soft);white-space:normal;font-style:italic;overflow-wrap:anywhere;padding-top:0}
.note{color:var(--soft);font-size:.85rem;margin:.5rem 0 0;max-width:60em;overflow-wrap:anywhere}
.note+.grid{margin-top:1.2rem}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:2rem 2.5rem;align-items:start}
.grid.small{grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:1.6rem 2.2rem;margin-top:1rem}
figure{margin:0;max-width:540px;min-width:0;break-inside:avoid}
.small figure{max-width:340px}
figcaption{font-size:.98rem;font-weight:600;margin-bottom:.2rem;overflow-wrap:anywhere}
.small figcaption{font-size:.86rem;font-weight:400}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.2rem 0 .4rem;padding:0;
font:.78rem/1.4 system-ui,"DejaVu Sans",Arial,sans-serif}
.legend li{display:flex;align-items:flex-start;gap:.4rem;min-width:0}
.legend span{overflow-wrap:anywhere;min-width:0}
.key{width:28px;height:12px;flex:none;margin-top:.2rem}
.plot{display:block;width:100%;max-width:100%;height:auto;font-family:system-ui,"DejaVu Sans",Arial,sans-serif}
.plot text{font-size:10.5px;fill:var(--ink)}
.plot .tick{fill:var(--soft)}
.plot .label,.plot .value{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.plot .value{fill:var(--soft)}
.small .plot text{font-size:11px}
.s0{color:var(--blue)}.s1{color:var(--red)}.s2{color:var(--green)}.s3{color:var(--purple)}.s4{color:var(--orange)}
.s5{color:var(--sky)}.s6{color:var(--grey)}.ink{color:var(--soft)}
.axis{stroke:var(--ink);stroke-width:1}
.rule{stroke:var(--rule);stroke-width:.8}
.mean{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.seed{fill:none;stroke:currentColor;stroke-width:.8;stroke-opacity:.55;stroke-linejoin:round}
.key .seed{stroke-width:1.2;stroke-opacity:1}
.failed{stroke-dasharray:2 2;stroke-opacity:.9}
.dashed.mean{stroke-dasharray:7 3}
.dotted.mean{stroke-dasharray:2 3}
.reference{fill:none;stroke:var(--ink);stroke-width:1;stroke-dasharray:5 4}
.mark{fill:currentColor;stroke:var(--paper);stroke-width:.8}
.bar{fill:currentColor}
.whisker{stroke:var(--ink);stroke-width:1.2}
.dot{fill:var(--paper);stroke:var(--ink);stroke-width:1}
.p0{fill:var(--green)}.p1{fill:var(--red)}.p2{fill:var(--orange)}.p3{fill:var(--sky)}.p4{fill:var(--rest)}
.p0,.p1,.p2,.p3,.p4{stroke:var(--paper);stroke-width:.6}
@media (max-width:600px){.detail{display:none}table{font-size:.76rem}tbody th,
.warnings tbody th{min-width:5.2rem}th,td{padding:.3rem .2rem}.plot text,.small .plot text{font-size:12px}.small .plot text{font-size:10.5px}}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#ccc;--blue:#0072b2;--red:#d55e00;--green:#009e73;
--purple:#b5588f;--orange:#e69f00;--sky:#56b4e9;--grey:#6e6e6e;--rest:#b4b4b4}
body{font-size:11pt}main{max-width:none;padding:0}.scroll{overflow:visible}
.grid{grid-template-columns:1fr 1fr}.grid.small{grid-template-columns:1fr 1fr 1fr}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";

}  // namespace

std::string html_document(std::string_view title, std::string_view more_style,
                          std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{0}</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n"
      "{3}</main>\n</body>\n</html>\n",
      html_text(title), kStyle, more_style, body);
}

std::string fact_html(std::string_view name, std::string_view html) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html);
}

std::string note_html(std::string_view text) {
  if (text.empty()) return "";
  std::string lines = html_text(text.substr(0, text.find('\n')));
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;) {
    const std::size_t begin = end + 1;
    end = text.find('\n', begin);
    if (begin < text.size()) lines += "<br/>\n" + html_text(text.substr(begin, end - begin));
  }
  return fmt::format("<p class=\"note\">{}</p>\n", lines);
}

std::string_view class_of(const TableHead& head) {
  return head.is_detail ? " class=\"detail\"" : "";
}

std::string table_html(const std::vector<TableHead>& heads, std::string_view rows) {
  std::string html;
  for (const TableHead& head : heads) {
    html += fmt::format("<th scope=\"col\"{}>{}", class_of(head), html_text(head.name));
    if (!head.unit.empty()) html += fmt::format("<br/><small>{}</small>", html_text(head.unit));
    html += "</th>";
  }
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}"
      "</tbody>\n</table></div>\n",
      html, rows);
}

void write_whole(const std::filesystem::path& path, std::string_view text) {
  ReplacingFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace syncopate::bench
