// A plot as it stands in the page: heading, drawing, legend and a line of explanation. The legend
// is text of the page, not of the drawing, so that long labels wrap at any width.
#pragma once

#include <string>
#include <vector>

namespace syncopate::bench {

struct LegendEntry {
  std::string swatch;  // a drawing made by one of the functions below
  std::string text;
};

struct Figure {
  std::string title;
  std::string drawing;  // as Svg::finish() has it
  std::vector<LegendEntry> legend;
  std::string caption;  // may be empty
};

// Titles, legends and captions are made harmless here.
std::string figure_html(const Figure& figure);

// Several drawings under one heading, with one legend and caption for all; each has its own title.
struct Panel {
  std::string title;
  std::string drawing;
  std::string caption;  // of this one
};
std::string panels_html(const Figure& common, const std::vector<Panel>& panels);

std::string series_swatch(std::size_t series);        // line and marker
std::string line_swatch(const std::string& classes);  // a line
std::string box_swatch(const std::string& classes);   // an area
std::string whisker_swatch();                         // mean and deviation
std::string dot_swatch();                             // one run

}  // namespace syncopate::bench
