#include "bench/compare/report/answer_page.h"

#include <fmt/format.h>

#include <string_view>

#include "bench/plots/document.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr std::string_view kAnswerStyle = R"css(
:root{color-scheme:light;--paper:#fff;--ink:#1a1f24;--soft:#56606b;--rule:#d3d9df}
body{background:#fff;color:#1a1f24;font:16px/1.45 "Helvetica Neue",Arial,"Liberation Sans",sans-serif}
main{max-width:1200px;padding:30px 40px 48px}
h1{font-size:31px;line-height:1.18;margin:0 0 4px;font-weight:700}
.set{margin:0 0 16px;color:#56606b;font-size:15px}
.answer{border-left:6px solid #0b4a7a;padding:1px 0 1px 16px;margin:0 0 20px;max-width:900px}
.answer.none{border-color:#6f7984}.answer p{margin:0}.answer .v{font-size:21px;line-height:1.34;font-weight:700}.answer .a{margin-top:4px}
.map,.two figure{max-width:none}.wide,.narrow{display:block;max-width:100%;height:auto}
figure .narrow,.say{display:none}
.two{display:grid;grid-template-columns:650fr 440fr;gap:30px;align-items:start;margin-bottom:8px}
.warn{list-style:none;padding:0;margin:12px 0 0;font-size:14.5px;display:flex;gap:6px 28px;flex-wrap:wrap}.warn b{color:#a34a00}
.two~.scroll table{width:100%}
.next{margin:16px 0 0;font-size:15px}
summary h2{display:inline;font-size:16px;margin:0;padding:0;border:0;font-weight:700}
code{background:#f0f3f5;padding:2px 5px;border-radius:3px;overflow-wrap:anywhere}
.fold{margin-top:18px;border-top:1px solid #d3d9df}
details{border-bottom:1px solid #d3d9df;padding:9px 0}
summary{cursor:pointer;font-weight:700}summary span{font-weight:400;color:#56606b}
details p{max-width:46em}
a{color:#0b4a7a}
@media (max-width:720px){main{padding:12px 16px 32px}h1{font-size:21px}
.set{font-size:13px;margin-bottom:9px;line-height:1.3}.answer{padding-left:11px;margin-bottom:12px;border-left-width:5px}
.answer .v{font-size:16.5px;line-height:1.3}.answer .a{font-size:14px}figure .wide{display:none}figure .narrow{display:block}
.two{grid-template-columns:1fr;gap:8px}
.say{display:block;margin:8px 0 0;padding:0;list-style:none;font-size:13.5px;line-height:1.32}.say li{margin-bottom:5px}}
@media print{@page{size:A4 landscape;margin:11mm}main{padding:0}.map .wide{display:block}figure .narrow,.say{display:none}
details::details-content{content-visibility:visible;display:block;height:auto}.fold{break-before:page;border:0}}
)css";

}  // namespace

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
  return html_document(page.title, kAnswerStyle, html);
}

}  // namespace syncopate::bench
