#include "bench/plots/figure.h"

#include <fmt/format.h>

#include "bench/plots/document.h"
#include "bench/plots/svg.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Draws the symbol of a legend entry. Screen readers skip it, because they read the entry's text.
std::string swatch(const std::string& body) {
  return fmt::format("<svg class=\"key\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">{}</svg>",
                     body);
}

std::string legend_html(const std::vector<LegendEntry>& legend) {
  if (legend.empty()) return "";
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : legend) {
    html += fmt::format("<li>{}<span>{}</span></li>", entry.swatch, html_text(entry.text));
  }
  return html + "</ul>\n";
}

}  // namespace

std::string figure_html(const Figure& figure) {
  return fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}\n{}</figure>\n",
                     html_text(figure.title), legend_html(figure.legend), figure.drawing,
                     note_html(figure.caption));
}

std::string panels_html(const Figure& common, const std::vector<Panel>& panels) {
  std::string html =
      fmt::format("<section class=\"panels\">\n<h2>{}</h2>\n{}{}<div class=\"grid small\">\n",
                  html_text(common.title), note_html(common.caption), legend_html(common.legend));
  for (const Panel& panel : panels) {
    html += figure_html(
        {.title = panel.title, .drawing = panel.drawing, .legend = {}, .caption = panel.caption});
  }
  return html + "</div>\n</section>\n";
}

std::string series_swatch(std::size_t series) {
  const std::string classes = series_classes(series);
  Svg mark;
  mark.line({1, 6}, {27, 6}, classes + " mean");
  mark.marker({14, 6}, series_marker(series), 3.4, classes + " mark");
  return swatch(mark.body());
}

std::string line_swatch(const std::string& classes) {
  Svg mark;
  mark.line({1, 6}, {27, 6}, classes);
  return swatch(mark.body());
}

std::string box_swatch(const std::string& classes) {
  Svg mark;
  mark.rectangle({8, 0.5}, 12, 11, classes);
  return swatch(mark.body());
}

std::string whisker_swatch() {
  Svg mark;
  mark.line({4, 6}, {24, 6}, "whisker");
  mark.line({4, 2}, {4, 10}, "whisker");
  mark.line({24, 2}, {24, 10}, "whisker");
  return swatch(mark.body());
}

std::string dot_swatch() {
  Svg mark;
  mark.marker({14, 6}, 0, 2.6, "dot");
  return swatch(mark.body());
}

}  // namespace syncopate::bench
