// A self-contained SVG picture. Colours and fonts are attributes of its elements, so that the
// picture can be placed in a paper as a file. Text is broken into lines here, because SVG does not
// break lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

// The layouts of a figure for pages of different widths.
enum class FigureForm : std::uint8_t { kWide, kNarrow };

// The colours of reports. Text on kPaper has a contrast of at least 5.9 : 1.
namespace colour {
inline constexpr std::string_view kInk = "#1a1f24";
inline constexpr std::string_view kMuted = "#56606b";
inline constexpr std::string_view kRule = "#d3d9df";
inline constexpr std::string_view kPaper = "#ffffff";
inline constexpr std::string_view kAnswer = "#0b4a7a";
inline constexpr std::string_view kRest = "#6f7984";
inline constexpr std::string_view kGrid = "#e6eaee";
}  // namespace colour

struct TextStyle {
  double size = 14.0;
  std::string_view fill = colour::kInk;
  std::string_view anchor = "start";  // or "middle", "end"
  bool is_bold = false;
  bool is_mono = false;
};

struct BoxStyle {
  std::string_view fill = "none";
  std::string_view stroke = "none";
  double stroke_width = 0.0;
  double radius = 0.0;
  std::string_view dash{};  // SVG dashes of the stroke, such as "2 3"
};

// A drawing with a y axis that points downwards. The functions escape the texts.
class Picture {
 public:
  // Makes an empty drawing. Screen readers read its title and its description to the user.
  Picture(double width, std::string_view title, std::string_view description);

  // Draws a box. A non-empty `tip` is shown while the pointer rests on the box.
  void box(Point corner, double width, double height, const BoxStyle& style,
           std::string_view tip = "");
  void dot(Point centre, double radius, std::string_view fill, std::string_view stroke,
           std::string_view tip = "");
  // Draws a marker. `shape` selects the outline of the marker, such as 0 for a circle; markers with
  // different outlines can be distinguished without colour.
  void marker(Point centre, std::size_t shape, double radius, std::string_view fill);
  // Draws a line. dash: the SVG dashes of the line, such as "4 3"; "" for a solid line.
  void line(Point from, Point to, std::string_view stroke, double width,
            std::string_view dash = "");
  void curve(const std::vector<Point>& points, std::string_view stroke, double width,
             std::string_view dash = "");
  void text(Point baseline, std::string_view text, const TextStyle& style = {});
  // Draws text in lines of at most `width`, with a distance of `line_height`. Returns the baseline
  // of the line that would follow.
  double paragraph(Point baseline, std::string_view text, double width, double line_height,
                   const TextStyle& style = {});
  // Defines a pattern of slanted lines and returns the value of `fill` that uses the pattern. `id`
  // must be unique in the page: a picture that is not displayed defines no pattern, so two pictures
  // cannot share a pattern.
  std::string define_hatch(std::string_view id);

  // Sets the height of the drawing to `y`.
  void end_at(double y) noexcept { height_ = y; }
  double width() const noexcept { return width_; }
  const std::string& title() const noexcept { return title_; }

  // Returns the <svg> element. css_class: the class of the element in the page's style sheet.
  std::string element(std::string_view css_class) const;
  // Returns the text of an SVG file, with a white background and a border, so that the picture is
  // legible on light and dark pages.
  std::string file() const;

 private:
  std::string head(double margin, std::string_view attributes) const;

  double width_;
  double height_ = 0.0;
  std::string title_;
  std::string description_;
  std::string body_;
};

// Returns the approximate width of a text in Arial, in the unit of `size`.
double text_width(std::string_view text, double size, bool is_bold = false);
// The reader's font may be wider than Arial by this factor.
inline constexpr double kWidestFont = 1.1;

}  // namespace syncopate::bench
