#include "bench/plots/charts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr TextStyle kTick{.size = kTickSize, .fill = colour::kMuted};

constexpr TextStyle anchored(TextStyle style, std::string_view anchor) {
  style.anchor = anchor;
  return style;
}

// Draws what a chart shows above it, over a line.
void draw_head(Picture& picture, const std::string& text, bool is_narrow) {
  picture.text({0.0, 12.0}, text, {.size = is_narrow ? 12.0 : 13.0, .fill = colour::kMuted});
  if (!is_narrow) picture.line({0.0, 24.0}, {picture.width(), 24.0}, colour::kInk, 1.0);
}

// Draws names side by side, in several lines if needed, from the baseline `y`. sample(index, at)
// draws the symbol before a name, 26 wide. Returns the baseline of the next line.
template <typename Sample>
double draw_legend(Picture& picture, double y, const std::vector<std::string>& names,
                   Sample sample) {
  constexpr double kSample = 32.0;
  constexpr double kLine = 18.0;
  double x = 0.0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto most = static_cast<std::size_t>((picture.width() - kSample) / 0.64 / kTickSize);
    const std::string name = shortened(names[i], most);
    const double width = kSample + kWidestFont * text_width(name, kTickSize);
    if (x > 0.0 && x + width > picture.width()) {
      x = 0.0;
      y += kLine;
    }
    sample(i, Point{x, y - 4.0});
    picture.text({x + kSample, y}, name, {.size = kTickSize});
    x += width + 14.0;
  }
  return names.empty() ? y : y + kLine;
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
    if (chart_.has_legend_inside) {
      draw_legend_inside();
      picture_.end_at(chart_.height);
    } else {
      draw_legend_below();
    }
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
      picture_.text({left_ - 8.0, y + 4.0}, heights[i], anchored(kTick, "end"));
    }
    const std::vector<std::string> texts = tick_texts(chart_.x);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      picture_.text({at(chart_.x.ticks[i], 0.0).x, bottom_ + 17.0}, texts[i],
                    anchored(kTick, "middle"));
    }
    picture_.text({right_, chart_.height - 3.0}, chart_.x.title, anchored(kTick, "end"));
    if (!chart_.level) return;
    const double y = at(0.0, chart_.level->y).y;
    picture_.line({left_, y}, {right_, y}, colour::kInk, 1.2, "4 3");
    picture_.text({right_, y + 14.0}, chart_.level->text, {.size = kTickSize, .anchor = "end"});
  }

  // Returns the pieces of a curve that lie above the x axis.
  std::vector<std::vector<Point>> pieces_of(const Curve& curve) const {
    std::vector<std::vector<Point>> pieces(1);
    std::optional<Point> before;
    for (const Point& value : curve.points) {
      if (!std::isfinite(value.x) || !std::isfinite(value.y)) continue;
      const Point point = at(value.x, value.y);
      const bool is_below = point.y > bottom_ + 0.5;
      if (before && is_below != (before->y > bottom_ + 0.5)) {
        const double share = (bottom_ - before->y) / (point.y - before->y);
        pieces.back().push_back({before->x + share * (point.x - before->x), bottom_});
        if (is_below) pieces.emplace_back();
      }
      if (!is_below) pieces.back().push_back(point);
      before = point;
    }
    return pieces;
  }

  void draw_curve(std::size_t index) {
    const Curve& curve = chart_.curves[index];
    std::vector<Point> points;
    for (const std::vector<Point>& piece : pieces_of(curve)) {
      if (curve.width > 0.0) picture_.curve(piece, curve.stroke, curve.width, curve.dash);
      points.insert(points.end(), piece.begin(), piece.end());
    }
    if (curve.marker.radius == 0.0) return;
    // Different curves have their markers at different points.
    constexpr std::size_t kMost = 12;
    const std::size_t stride = curve.width == 0.0 ? 1 : 1 + points.size() / kMost;
    for (std::size_t i = (2 * index + 1) % stride; i < points.size(); i += stride) {
      picture_.marker(points[i], curve.marker.shape, curve.marker.radius, curve.stroke);
    }
  }

  void draw_sample(const Curve& curve, Point from, double width) {
    picture_.line(from, {from.x + width, from.y}, curve.stroke, curve.width, curve.dash);
    if (curve.marker.radius > 0.0) {
      picture_.marker({from.x + width / 2.0, from.y}, curve.marker.shape, curve.marker.radius,
                      curve.stroke);
    }
  }

  std::vector<const Curve*> named_curves() const {
    std::vector<const Curve*> named;
    for (const Curve& curve : chart_.curves) {
      if (!curve.name.empty()) named.push_back(&curve);
    }
    return named;
  }

  void draw_legend_inside() {
    const double x = left_ + (picture_.width() - left_) * 0.4;
    double y = bottom_ - 30.0;
    for (const Curve* curve : named_curves()) {  // from below, so that the last is on top here, too
      draw_sample(*curve, {x, y}, 30.0);
      picture_.text({x + 38.0, y + 4.5}, curve->name,
                    {.size = 13.0,
                     .fill = curve->stroke == colour::kRest ? colour::kInk : curve->stroke,
                     .is_bold = curve->stroke == colour::kAnswer});
      y -= 20.0;
    }
  }

  void draw_legend_below() {
    const std::vector<const Curve*> named = named_curves();
    std::vector<std::string> names;
    for (const Curve* curve : named) names.push_back(curve->name);
    const double y =
        draw_legend(picture_, chart_.height + 22.0, names,
                    [&](std::size_t i, Point from) { draw_sample(*named[i], from, 26.0); });
    picture_.end_at(y - 12.0);
  }

  const LineChart& chart_;
  const double left_;
  const double top_;
  const double bottom_;
  Picture picture_;
  double right_ = 0.0;
};

// Returns the largest value that the bar, its whisker or its dots reach.
double reach_of(const BarRow& row) {
  double reach = row.deviation.value_or(0.0);
  for (const Segment& segment : row.segments) {
    if (std::isfinite(segment.value)) reach += segment.value;
  }
  for (const double dot : row.dots) reach = std::max(reach, dot);
  return std::isfinite(reach) ? reach : 0.0;
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarChart& chart)
      : chart_(chart), picture_(kPlotWidth, chart.title, "") {
    double note = 0.0;
    double reach = 0.0;
    for (const BarRow& row : chart.rows) {
      note = std::max(note, kWidestFont * text_width(row.note, kTickSize));
      reach = std::max(reach, reach_of(row));
    }
    width_ = kPlotWidth - kLeft - std::max(note + 10.0, 16.0);
    axis_ = fitting_axis(width_, [&](int most) {
      return linear_axis("", 0.0, reach > 0.0 ? reach : 1.0, most, false);
    });
  }

  Picture draw() {
    draw_head(picture_, chart_.axis_title, false);
    draw_ticks();
    for (const BarRow& row : chart_.rows) draw_row(row);
    double y = bottom() + 36.0;
    std::vector<std::string> names;
    for (const FillName& entry : chart_.legend) names.push_back(entry.name);
    y = draw_legend(picture_, y, names, [&](std::size_t i, Point from) {
      picture_.box({from.x, from.y - 6.0}, 26.0, 12.0, {.fill = chart_.legend[i].fill});
    });
    y = picture_.paragraph({0.0, y}, chart_.key, kPlotWidth, 16.0, kTick);
    picture_.end_at(y - 12.0);
    return std::move(picture_);
  }

 private:
  static constexpr double kLeft = 12.0;  // room for half of the first tick
  static constexpr double kLabel = 17.0;
  static constexpr double kBar = 14.0;
  static constexpr double kGap = 3.0;

  double x_of(double value) const { return kLeft + width_ * axis_.place(std::max(0.0, value)); }
  double bottom() const {
    double y = kTop;
    for (const BarRow& row : chart_.rows)
      y += (row.label.empty() ? 0.0 : kLabel + kGap) + kBar + kGap;
    return y + kGap;
  }

  void draw_ticks() {
    const std::vector<std::string> texts = tick_texts(axis_);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const double x = x_of(axis_.ticks[i]);
      picture_.line({x, kTop}, {x, bottom()}, colour::kGrid, 1.0);
      picture_.text({x, bottom() + 15.0}, texts[i], anchored(kTick, "middle"));
    }
  }

  void draw_row(const BarRow& row) {
    if (!row.label.empty()) {
      y_ += kLabel + kGap;
      const auto most = static_cast<std::size_t>((kPlotWidth - kLeft) / 0.64 / kTickSize);
      picture_.text({kLeft, y_ - 4.0}, shortened(row.label, most), {.size = kTickSize});
    }
    double end = 0.0;
    for (const Segment& segment : row.segments) {
      if (!std::isfinite(segment.value) || segment.value <= 0.0) continue;
      const double begin = x_of(end);
      end += segment.value;
      picture_.box({begin, y_}, x_of(end) - begin, kBar, {.fill = segment.fill}, segment.tip);
    }
    const double middle = y_ + kBar / 2.0;
    if (std::isfinite(row.deviation.value_or(NAN)))
      draw_whiskers(end, *row.deviation, middle - (row.dots.empty() ? 0.0 : 2.5));
    for (const double dot : row.dots) {
      picture_.dot({x_of(dot), middle + 4.0}, 2.0, colour::kPaper, colour::kInk);
    }
    picture_.text({x_of(reach_of(row)) + 7.0, middle + 4.0}, row.note, kTick);
    y_ += kBar + kGap;
  }

  void draw_whiskers(double value, double deviation, double middle) {
    const double low = x_of(value - deviation);
    const double high = x_of(value + deviation);
    picture_.line({low, middle}, {high, middle}, colour::kInk, 1.2);
    for (const double x : {low, high}) {
      picture_.line({x, middle - 3.0}, {x, middle + 3.0}, colour::kInk, 1.2);
    }
  }

  static constexpr double kTop = 26.0;

  const BarChart& chart_;
  Picture picture_;
  Axis axis_;
  double width_ = 0.0;
  double y_ = kTop;
};

}  // namespace

Curve series_curve(std::size_t index, const std::string& name) {
  constexpr std::array kColours = {colour::kBlue,   colour::kRed, colour::kGreen, colour::kPurple,
                                   colour::kOrange, colour::kSky, colour::kGrey};
  constexpr std::array<std::string_view, 3> kDashes = {"", "7 3", "2 3"};
  return {.points = {},
          .stroke = kColours.at(index % kColours.size()),
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
