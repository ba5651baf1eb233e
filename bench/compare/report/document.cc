#include "bench/compare/report/document.h"

#include <fmt/format.h>

#include "bench/compare/report/style.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {

std::string html_document(std::string_view title, std::string_view more_style,
                          std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{0}</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n"
      "{3}</main>\n</body>\n</html>\n",
      html_text(title), style_sheet(), more_style, body);
}

std::string fact_html(std::string_view name, std::string_view html) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html);
}

std::string table_html(std::span<const TableHead> heads, std::string_view rows) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const TableHead& head : heads) {
    const std::string unit =
        head.unit.empty() ? "" : "<br/><small>" + html_text(head.unit) + "</small>";
    html += "<th scope=\"col\">" + html_text(head.name) + unit + "</th>";
  }
  return fmt::format("{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n", html, rows);
}

}  // namespace syncopate::bench
