#include "bench/plots/charts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr TextStyle kTick{.size = kTickSize, .fill = colour::kMuted, .anchor = "middle"};
constexpr TextStyle kTickAtEnd{.size = kTickSize, .fill = colour::kMuted, .anchor = "end"};

// Returns the text, cut to this width.
std::string fitted(const std::string& text, double width) {
  constexpr double kWidestLine = 1.2;  // a single line, without others that make up for it
  std::size_t most = width_of(text);
  while (most > 1 && kWidestLine * text_width(shortened(text, most), kTickSize) > width) --most;
  return shortened(text, most);
}

// Draws what a chart shows above it, over a line.
void draw_head(Picture& picture, const std::string& text, bool is_narrow) {
  picture.text({0.0, 12.0}, text, {.size = is_narrow ? 12.0 : 13.0, .fill = colour::kMuted});
  if (!is_narrow) picture.line({0.0, 24.0}, {picture.width(), 24.0}, colour::kInk, 1.0);
}

void draw_sample(Picture& picture, const Curve& curve, Point from, double width) {
  picture.line(from, {from.x + width, from.y}, curve.stroke, curve.width, curve.dash);
  if (curve.marker.radius == 0.0) return;
  picture.marker({from.x + width / 2.0, from.y}, curve.marker.shape, curve.marker.radius,
                 curve.stroke);
}

// Draws the names of curves side by side, in several lines if needed, from the baseline `y`.
// Returns the baseline of the next line.
double draw_legend(Picture& picture, double y, const std::vector<Curve>& curves) {
  constexpr double kSample = 26.0;
  constexpr double kLine = 18.0;
  double x = 0.0;
  bool is_empty = true;
  for (const Curve& curve : curves) {
    if (curve.name.empty()) continue;
    is_empty = false;
    const std::string name = fitted(curve.name, picture.width() - kSample - 6.0);
    const double width = kSample + 6.0 + kWidestFont * text_width(name, kTickSize);
    if (x > 0.0 && x + width > picture.width()) {
      x = 0.0;
      y += kLine;
    }
    draw_sample(picture, curve, {x, y - 4.0}, kSample);
    picture.text({x + kSample + 6.0, y}, name, {.size = kTickSize});
    x += width + 14.0;
  }
  return is_empty ? y : y + kLine;
}

class LineDrawing {
 public:
  explicit LineDrawing(const LineChart& chart)
      : chart_(chart),
        left_(std::max(40.0, kWidestFont * widest_tick(chart.y) + 10.0)),
        top_(chart.is_narrow ? 24.0 : 34.0),
        bottom_(chart.height - (chart.is_narrow ? 34.0 : 40.0)),
        picture_(chart.is_narrow ? 358.0 : kPlotWidth, chart.title, "") {
    // The last label of the x axis may stand out beyond the end of the axis.
    const std::vector<std::string> texts = tick_texts(chart.x);
    const double half = texts.empty() ? 0.0 : text_width(texts.back(), kTickSize) / 2.0;
    right_ = picture_.width() - std::max(8.0, kWidestFont * half);
  }

  Picture draw() {
    draw_axes();
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) draw_curve(i);
    if (chart_.has_legend_inside) draw_legend_inside();
    picture_.end_at(chart_.has_legend_inside
                        ? chart_.height
                        : draw_legend(picture_, chart_.height + 22.0, chart_.curves) - 12.0);
    return std::move(picture_);
  }

 private:
  Point at(double x, double y) const {
    return {left_ + (right_ - left_) * chart_.x.place(x),
            bottom_ - (bottom_ - top_) * chart_.y.place(y)};
  }

  void draw_axes() {
    draw_head(picture_, chart_.y.title, chart_.is_narrow);
    const std::vector<std::string> heights = tick_texts(chart_.y);
    for (std::size_t i = 0; i < heights.size(); ++i) {
      const double y = at(0.0, chart_.y.ticks[i]).y;
      picture_.line({left_, y}, {right_, y}, colour::kGrid, 1.0);
      picture_.text({left_ - 8.0, y + 4.0}, heights[i], kTickAtEnd);
    }
    const std::vector<std::string> texts = tick_texts(chart_.x);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      picture_.text({at(chart_.x.ticks[i], 0.0).x, bottom_ + 17.0}, texts[i], kTick);
    }
    picture_.text({right_, chart_.height - 3.0}, chart_.x.title, kTickAtEnd);
    if (!chart_.level) return;
    const double y = at(0.0, chart_.level->y).y;
    picture_.line({left_, y}, {right_, y}, colour::kInk, 1.2, "4 3");
    picture_.text({right_, y + 14.0}, chart_.level->text, {.size = kTickSize, .anchor = "end"});
  }

  bool is_below(Point point) const { return point.y > bottom_ + 0.5; }

  // Draws the pieces of a line that lie above the x axis.
  void draw_pieces(const Curve& curve, const std::vector<Point>& points) {
    std::vector<Point> piece;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i > 0 && is_below(points[i]) != is_below(points[i - 1])) {
        const Point from = points[i - 1];
        const double share = (bottom_ - from.y) / (points[i].y - from.y);
        piece.push_back({from.x + share * (points[i].x - from.x), bottom_});
      }
      if (!is_below(points[i])) piece.push_back(points[i]);
      if (!is_below(points[i]) && i + 1 < points.size()) continue;
      picture_.curve(piece, curve.stroke, curve.width, curve.dash);
      piece.clear();
    }
  }

  void draw_curve(std::size_t index) {
    const Curve& curve = chart_.curves[index];
    std::vector<Point> points;
    for (const Point& point : curve.points) {
      if (std::isfinite(point.x) && std::isfinite(point.y)) points.push_back(at(point.x, point.y));
    }
    if (curve.width > 0.0) draw_pieces(curve, points);
    if (curve.marker.radius == 0.0) return;
    // Different curves have their markers at different points.
    constexpr std::size_t kMost = 12;
    const std::size_t stride = 1 + points.size() / kMost;
    for (std::size_t i = (2 * index + 1) % stride; i < points.size(); i += stride) {
      if (is_below(points[i])) continue;
      picture_.marker(points[i], curve.marker.shape, curve.marker.radius, curve.stroke);
    }
  }

  void draw_legend_inside() {
    const double x = left_ + (picture_.width() - left_) * 0.4;
    double y = bottom_ - 30.0;
    for (const Curve& curve : chart_.curves) {  // from below: the last is on top here, too
      if (curve.name.empty()) continue;
      draw_sample(picture_, curve, {x, y}, 30.0);
      picture_.text({x + 38.0, y + 4.5}, curve.name,
                    {.size = 13.0,
                     .fill = curve.stroke == colour::kRest ? colour::kInk : curve.stroke,
                     .is_bold = curve.stroke == colour::kAnswer});
      y -= 20.0;
    }
  }

  const LineChart& chart_;
  const double left_;
  const double top_;
  const double bottom_;
  Picture picture_;
  double right_ = 0.0;
};

// Returns the largest finite value that the bar or its dots reach.
double reach_of(const BarRow& row) {
  double reach = 0.0;
  for (const Segment& segment : row.segments) {
    if (std::isfinite(segment.value)) reach += segment.value;
  }
  for (const double dot : row.dots) {
    if (std::isfinite(dot)) reach = std::max(reach, dot);
  }
  return reach;
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarChart& chart)
      : chart_(chart), picture_(kPlotWidth, chart.title, "") {
    double note = 0.0;
    double reach = 0.0;
    bottom_ = kTop + kGap;
    for (const BarRow& row : chart.rows) {
      note = std::max(note, kWidestFont * text_width(row.note, kTickSize));
      reach = std::max(reach, reach_of(row));
      bottom_ += kBar + kGap + (row.label.empty() ? 0.0 : kLabel);
    }
    width_ = kPlotWidth - kLeft - std::max(note + 10.0, 16.0);
    axis_ = fitting_axis("", 0.0, reach > 0.0 ? reach : 1.0, width_);
  }

  Picture draw() {
    draw_head(picture_, chart_.axis_title, false);
    const std::vector<std::string> texts = tick_texts(axis_);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const double x = x_of(axis_.ticks[i]);
      picture_.line({x, kTop}, {x, bottom_}, colour::kGrid, 1.0);
      picture_.text({x, bottom_ + 15.0}, texts[i], kTick);
    }
    double y = kTop;
    for (const BarRow& row : chart_.rows) y = draw_row(row, y);
    std::vector<Curve> legend;
    for (const FillName& entry : chart_.legend) {
      legend.push_back({.stroke = entry.fill, .width = kBar, .name = entry.name});
    }
    y = draw_legend(picture_, bottom_ + 36.0, legend);
    y = picture_.paragraph({0.0, y}, chart_.key, kPlotWidth, 16.0,
                           {.size = kTickSize, .fill = colour::kMuted});
    picture_.end_at(y - 12.0);
    return std::move(picture_);
  }

 private:
  static constexpr double kTop = 26.0;
  static constexpr double kLeft = 12.0;  // room for half of the first tick
  static constexpr double kLabel = 20.0;
  static constexpr double kBar = 14.0;
  static constexpr double kGap = 3.0;

  double x_of(double value) const { return kLeft + width_ * axis_.place(value); }

  // Returns the top of the next row.
  double draw_row(const BarRow& row, double y) {
    if (!row.label.empty()) {
      y += kLabel;
      picture_.text({kLeft, y - 4.0}, fitted(row.label, kPlotWidth - kLeft), {.size = kTickSize});
    }
    double end = 0.0;
    for (const Segment& segment : row.segments) {
      if (!std::isfinite(segment.value) || segment.value <= 0.0) continue;
      const double begin = x_of(end);
      end += segment.value;
      picture_.box({begin, y}, x_of(end) - begin, kBar, {.fill = segment.fill}, segment.tip);
    }
    const double middle = y + kBar / 2.0;
    for (const double dot : row.dots) {
      if (std::isfinite(dot)) picture_.dot({x_of(dot), middle}, 2.5, colour::kPaper, colour::kInk);
    }
    picture_.text({x_of(reach_of(row)) + 7.0, middle + 4.0}, row.note,
                  {.size = kTickSize, .fill = colour::kMuted});
    return y + kBar + kGap;
  }

  const BarChart& chart_;
  Picture picture_;
  Axis axis_;
  double width_ = 0.0;
  double bottom_ = 0.0;
};

}  // namespace

Curve series_curve(std::size_t index, const std::string& name) {
  constexpr std::array kColours = {colour::kBlue,   colour::kRed, colour::kGreen, colour::kPurple,
                                   colour::kOrange, colour::kSky, colour::kGrey};
  constexpr std::array<std::string_view, 3> kDashes = {"", "7 3", "2 3"};
  return {.stroke = kColours.at(index % kColours.size()),
          .width = 2.0,
          .dash = kDashes.at(index % kDashes.size()),
          .marker = {.shape = index, .radius = 3.2},
          .name = name};
}

Extent extent_of(const std::vector<Curve>& curves, double Point::*coordinate) {
  Extent extent;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      if (!std::isfinite(point.*coordinate)) continue;
      extent.low = std::min(extent.low, point.*coordinate);
      extent.high = std::max(extent.high, point.*coordinate);
    }
  }
  return extent;
}

Picture draw(const LineChart& chart) { return LineDrawing(chart).draw(); }
Picture draw(const BarChart& chart) { return BarDrawing(chart).draw(); }

}  // namespace syncopate::bench
