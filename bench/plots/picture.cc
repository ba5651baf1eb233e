#include "bench/plots/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>
#include <sstream>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr std::string_view kSans =
    "'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
constexpr std::string_view kMono = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

}  // namespace

Picture::Picture(double width, std::string_view title, std::string_view description)
    : width_(width), title_(title), description_(description) {}

void Picture::box(Point corner, double width, double height, const BoxStyle& style,
                  std::string_view tip) {
  body_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"",
                  corner.x, corner.y, std::max(0.0, width), height, style.fill);
  if (style.stroke_width > 0.0) {
    body_ +=
        fmt::format(" stroke=\"{}\" stroke-width=\"{:.1f}\"", style.stroke, style.stroke_width);
  }
  if (!style.dash.empty()) body_ += fmt::format(" stroke-dasharray=\"{}\"", style.dash);
  if (style.radius > 0.0) body_ += fmt::format(" rx=\"{:.1f}\"", style.radius);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", html_text(tip));
}

void Picture::dot(Point centre, double radius, std::string_view fill, std::string_view stroke,
                  std::string_view tip) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"{}\"",
                       centre.x, centre.y, radius, fill, stroke);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></circle>\n", html_text(tip));
}

void Picture::marker(Point centre, std::size_t shape, double radius, std::string_view fill) {
  struct Polygon {
    int corners;
    double turn;  // of the first corner from the top, clockwise, in full turns
  };
  constexpr std::array kPolygons = {Polygon{4, 0.125}, Polygon{3, 0.0}, Polygon{4, 0.0},
                                    Polygon{3, 0.5},   Polygon{5, 0.0}, Polygon{3, 0.25}};
  if (shape % (kPolygons.size() + 1) == 0) return dot(centre, radius, fill, colour::kPaper);
  const Polygon& polygon = kPolygons.at(shape % (kPolygons.size() + 1) - 1);
  constexpr double kOverCircle = 1.3;  // so that all shapes look about equally large
  body_ += "<polygon points=\"";
  for (int i = 0; i < polygon.corners; ++i) {
    const double angle = 2.0 * std::numbers::pi * (polygon.turn + 1.0 * i / polygon.corners);
    body_ += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ",
                         centre.x + kOverCircle * radius * std::sin(angle),
                         centre.y - kOverCircle * radius * std::cos(angle));
  }
  body_ += fmt::format("\" fill=\"{}\" stroke=\"{}\"/>\n", fill, colour::kPaper);
}

void Picture::line(Point from, Point to, std::string_view stroke, double width,
                   std::string_view dash) {
  curve({from, to}, stroke, width, dash);
}

void Picture::curve(const std::vector<Point>& points, std::string_view stroke, double width,
                    std::string_view dash) {
  if (points.empty()) return;
  body_ += "<path d=\"M";
  for (const Point& point : points) {
    body_ +=
        fmt::format("{}{:.1f},{:.1f}", &point == &points.front() ? "" : " L", point.x, point.y);
  }
  body_ += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"", stroke, width);
  if (!dash.empty()) body_ += fmt::format(" stroke-dasharray=\"{}\"", dash);
  body_ += " stroke-linejoin=\"round\"/>\n";
}

void Picture::text(Point baseline, std::string_view text, const TextStyle& style) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" fill=\"{}\"",
                       baseline.x, baseline.y, style.size, style.fill);
  if (style.anchor != "start") body_ += fmt::format(" text-anchor=\"{}\"", style.anchor);
  if (style.is_bold) body_ += " font-weight=\"700\"";
  if (style.is_mono) body_ += fmt::format(" font-family=\"{}\"", kMono);
  body_ += fmt::format(">{}</text>\n", html_text(text));
}

double Picture::paragraph(Point baseline, std::string_view text, double width, double line_height,
                          const TextStyle& style) {
  std::istringstream words{std::string(text)};
  std::string line;
  double y = baseline.y;
  const auto flush = [&] {
    if (line.empty()) return;
    this->text({baseline.x, y}, line, style);
    y += line_height;
    line.clear();
  };
  for (std::string word; words >> word;) {
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && kWidestFont * text_width(longer, style.size, style.is_bold) > width) {
      flush();
      line = word;
    } else {
      line = longer;
    }
  }
  flush();
  return y;
}

std::string Picture::define_hatch(std::string_view id) {
  body_ += fmt::format(
      "<defs><pattern id=\"{1}\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"{0}\"/><line x1=\"0\" "
      "y1=\"0\" x2=\"0\" y2=\"7\" stroke=\"#8a949e\" stroke-width=\"1.5\"/></pattern></defs>\n",
      colour::kPaper, id);
  return fmt::format("url(#{})", id);
}

std::string Picture::head(double margin, std::string_view attributes) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{0:.0f} {0:.0f} {1:.0f} {2:.0f}\" "
      "width=\"{1:.0f}\" height=\"{2:.0f}\" role=\"img\" font-family=\"{3}\"{4}>"
      "<title>{5}</title><desc>{6}</desc>\n",
      -margin, width_ + 2.0 * margin, height_ + 2.0 * margin, kSans, attributes, html_text(title_),
      html_text(description_));
}

std::string Picture::element(std::string_view css_class) const {
  return head(0.0, fmt::format(" class=\"{}\"", css_class)) + body_ + "</svg>\n";
}

std::string Picture::file() const {
  constexpr double kMargin = 24.0;
  return head(kMargin, "") +
         fmt::format(
             "<rect x=\"{0:.1f}\" y=\"{0:.1f}\" width=\"{1:.0f}\" height=\"{2:.0f}\" rx=\"8\" "
             "fill=\"{3}\" stroke=\"#8a949e\"/>\n",
             0.5 - kMargin, width_ + 2.0 * kMargin - 1.0, height_ + 2.0 * kMargin - 1.0,
             colour::kPaper) +
         body_ + "</svg>\n";
}

double text_width(std::string_view text, double size, bool is_bold) {
  constexpr std::string_view kNarrow = "iljtf.,:;'|! ()";
  constexpr std::string_view kWide = "mwMW%";
  double em = 0.0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue;  // the rest of a UTF-8 character
    em += kNarrow.find(c) != kNarrow.npos ? 0.28
          : kWide.find(c) != kWide.npos   ? 0.83
          : std::isupper(byte) != 0       ? 0.67
                                          : 0.56;
  }
  return em * size * (is_bold ? 1.06 : 1.0);
}

}  // namespace syncopate::bench
