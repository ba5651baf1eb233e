#include "bench/compare/report/figure.h"

#include "bench/compare/report/svg.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

// A swatch repeats what the words beside it say, so readers of the page aloud pass over it.
std::string swatch(const std::string& body) {
  return "<svg class=\"key\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">" + body + "</svg>";
}

std::string legend_html(const std::vector<LegendEntry>& legend) {
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : legend) {
    html += "<li>" + entry.swatch + "<span>" + html_text(entry.text) + "</span></li>";
  }
  return html + "</ul>\n";
}

std::string caption_html(const std::string& caption) {
  return caption.empty() ? "" : "<p class=\"note\">" + html_text(caption) + "</p>\n";
}

}  // namespace

std::string figure_html(const Figure& figure) {
  return "<figure>\n<figcaption>" + html_text(figure.title) + "</figcaption>\n" +
         legend_html(figure.legend) + figure.drawing + "\n" + caption_html(figure.caption) +
         "</figure>\n";
}

std::string panels_html(const Figure& common, const std::vector<Panel>& panels) {
  std::string html = "<section class=\"panels\">\n<h2>" + html_text(common.title) + "</h2>\n" +
                     caption_html(common.caption) + legend_html(common.legend) +
                     "<div class=\"grid small\">\n";
  for (const Panel& panel : panels) {
    html += "<figure>\n<figcaption>" + html_text(panel.title) + "</figcaption>\n" + panel.drawing +
            "\n" + caption_html(panel.caption) + "</figure>\n";
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
