#include "bench/compare/report/answer_page.h"

#include <fmt/format.h>

#include "bench/plots/document.h"
#include "bench/plots/text.h"

namespace syncopate::bench {

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
