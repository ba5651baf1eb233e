// A figure of the page: heading, legend, drawing and caption. The legend is text of the page, not
// of the drawing, so that long labels wrap at any width.
#pragma once

#include <string>
#include <vector>

namespace syncopate::bench {

struct LegendEntry {
  std::string swatch;  // SVG of the symbol, such as series_swatch() returns
  std::string text;
};

// A figure. Its text is escaped by the functions that take a figure.
struct Figure {
  std::string title;
  std::string drawing;  // the SVG from Svg::finish()
  std::vector<LegendEntry> legend;
  std::string caption;  // text below the drawing; may be empty
};

std::string figure_html(const Figure& figure);

struct Panel {
  std::string title;
  std::string drawing;
  std::string caption;  // text below the panel's drawing; may be empty
};
// Returns a figure with several drawings under the heading, legend and caption of `common`.
std::string panels_html(const Figure& common, const std::vector<Panel>& panels);

std::string series_swatch(std::size_t series);        // draws a line with the series' marker
std::string line_swatch(const std::string& classes);  // draws a line
std::string box_swatch(const std::string& classes);   // draws a filled area
std::string whisker_swatch();                         // draws a mean with its deviation
std::string dot_swatch();                             // draws the symbol of a single run

}  // namespace syncopate::bench
