// The figure of a map.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "bench/compare/report/map_report.h"
#include "bench/compare/report/map_words.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// The steps of the fill. They have one hue, and their lightness rises strictly, so that the figure
// is legible in grey.
struct Step {
  double below;  // ratios below this have the fill
  std::string_view fill;
  std::string_view ink;
  std::string_view from;  // the least ratio, for the legend
};
constexpr std::array kFillSteps = {
    Step{1.25, "#0b4a7a", colour::kPaper, "1×"}, Step{1.6, "#3a76a8", colour::kPaper, "1.25×"},
    Step{2.5, "#8db7d9", colour::kInk, "1.6×"}, Step{4.0, "#c9deee", colour::kInk, "2.5×"},
    Step{std::numeric_limits<double>::infinity(), "#eef2f5", colour::kInk, "4×"}};

const Step& step_of(double ratio) {
  return *std::ranges::find_if(kFillSteps, [&](const Step& step) { return ratio < step.below; });
}

bool is_marked(const RowOutcome& cell) {
  return cell.state == RowState::kWinner || cell.state == RowState::kTie;
}

// What a cell says in full, for its tip.
std::string cell_words(const Outcome& column, std::size_t row) {
  const RowOutcome& cell = column.cells[row];
  const std::string name = row_name(column.rows[row]);
  switch (cell.state) {
    case RowState::kMissed:
      return fmt::format("{}: {} of {} runs reached the target", name, cell.reached, cell.runs);
    case RowState::kBusy:
      return name + ": other programs used the CPUs";
    case RowState::kFailed:
    case RowState::kPending:
      return name + ": runs failed or are missing";
    case RowState::kLeftOut:
      return name + ": its learning rate is too large";
    default:
      break;
  }
  const std::string text = fmt::format("{}: {} s", name, short_seconds(cell.seconds));
  if (!cell.over_best) return text + ", the least mean of the column";
  return text + fmt::format(", {} times the least{}", ratio_text(cell.ratio),
                            interval_text(*cell.over_best));
}

std::string description_of(const StrategyMap& map) {
  std::string text;
  for (const Outcome& column : map.columns) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : " ", column_head(column).name,
                        verdict_sentence(column));
  }
  return text;
}

std::string title_of(const StrategyMap& map) {
  return fmt::format("Time to {} accuracy of {} strategies on {}", target_text(map.first()),
                     map.rows().size(),
                     count_text(static_cast<int>(map.columns.size()), "cluster"));
}

// Returns how many letters of this width have room.
std::size_t letters_in(double room, double width) { return static_cast<std::size_t>(room / width); }

// The sizes of one form of the figure.
struct Layout {
  double width;
  double left;  // of the names
  double gap;   // between columns
  double row_gap;
  double kind_gap;  // in addition, between the kinds of training
  double cell_height;
  bool is_narrow;
};

Layout layout_of(FigureForm form, std::size_t rows) {
  if (form == FigureForm::kNarrow) return {358.0, 86.0, 4.0, 3.0, 3.0, 46.0, true};
  const double cell_height = rows <= 5 ? 64.0 : rows == 6 ? 56.0 : 46.0;
  return {1120.0, 232.0, 8.0, 4.0, 6.0, cell_height, false};
}

class MapDrawing {
 public:
  MapDrawing(const StrategyMap& map, FigureForm form)
      : map_(map),
        layout_(layout_of(form, map.rows().size())),
        picture_(layout_.width, title_of(map), description_of(map)),
        hatch_(picture_.define_hatch(layout_.is_narrow ? "hatch-narrow" : "hatch-wide")) {}

  Picture draw() {
    layout_.is_narrow ? draw_narrow_heads() : draw_wide_heads();
    draw_rows();
    if (!layout_.is_narrow) {
      draw_sentences();
    } else {
      draw_legend({0.0, y_ + 6.0}, 40.0, 11.0);
      y_ += 44.0;
    }
    picture_.end_at(y_);
    return std::move(picture_);
  }

 private:
  std::size_t columns() const noexcept { return map_.columns.size(); }
  double cell_width() const {
    return (layout_.width - layout_.left) / static_cast<double>(columns()) - layout_.gap;
  }
  double x_of(std::size_t column) const {
    return layout_.left + layout_.gap + static_cast<double>(column) * (cell_width() + layout_.gap);
  }

  void draw_wide_heads() {
    for (std::size_t c = 0; c < columns(); ++c) {
      const ColumnHead head = column_head(map_.columns[c]);
      // Letters of a wide font at these sizes are 11 and, on average, 7.4 wide.
      const double room = cell_width() - 4.0;
      picture_.text({x_of(c) + 2.0, 18.0}, shortened(head.name, letters_in(room, 11.0) + 1),
                    {.size = 17.0, .is_bold = true});
      picture_.text({x_of(c) + 2.0, 36.0}, shortened(head.facts, letters_in(room, 7.4)),
                    {.size = 13.0, .fill = colour::kMuted});
    }
    y_ = 48.0;
  }

  void draw_narrow_heads() {
    for (std::size_t c = 0; c < columns(); ++c) {
      std::string name = column_head(map_.columns[c]).name;
      const bool is_one_word = name.find(' ') == std::string::npos;  // which cannot be wrapped
      if (is_one_word) name = shortened(name, letters_in(cell_width(), 9.0));
      picture_.paragraph({x_of(c) + cell_width() / 2.0, 12.0}, name, cell_width(), 14.0,
                         {.size = 12.5, .anchor = "middle", .is_bold = true});
    }
    y_ = 34.0;
  }

  void draw_rows() {
    const Rows& rows = map_.rows();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r > 0 && rows[r].kind != rows[r - 1].kind) y_ += layout_.kind_gap;
      draw_name(rows[r]);
      for (std::size_t c = 0; c < columns(); ++c) draw_cell(c, r);
      y_ += layout_.cell_height + layout_.row_gap;
    }
  }

  void draw_name(const VariantSummary& row) {
    const double middle = y_ + layout_.cell_height / 2.0;
    if (layout_.is_narrow) {
      const std::string name = capitalised(short_name(row));
      picture_.paragraph({0.0, middle + (text_width(name, 13.0, true) > layout_.left ? -2.0 : 5.0)},
                         name, layout_.left, 15.0, {.size = 13.0, .is_bold = true});
      return;
    }
    picture_.text({0.0, middle - 1.0}, shortened(row_name(row), 28),
                  {.size = 16.0, .is_bold = true});
    picture_.text(
        {0.0, middle + 16.0}, shortened(row.name, 31),
        {.size = row.name.size() < 30 ? 12.0 : 11.5, .fill = colour::kMuted, .is_mono = true});
  }

  void draw_cell(std::size_t column, std::size_t row) {
    const RowOutcome& cell = map_.columns[column].cells[row];
    const Point corner{x_of(column), y_};
    const double width = cell_width();
    const double height = layout_.cell_height;
    const std::string tip = cell_words(map_.columns[column], row);
    const Point middle{corner.x + width / 2.0, corner.y + height / 2.0};
    const double small = layout_.is_narrow ? (width < 48.0 ? 10.0 : 11.5) : 13.0;
    if (cell.ratio == 0.0) {
      const bool is_missed = cell.state == RowState::kMissed;
      picture_.box(corner, width, height,
                   {.fill = is_missed ? std::string_view(hatch_) : "none",
                    .stroke = "#8a949e",
                    .stroke_width = 1.0,
                    .radius = 3.0,
                    .dash = is_missed ? "" : "2 3"},
                   tip);
      const std::string words = state_text(cell);
      picture_.box({middle.x - text_width(words, small) / 2.0 - 4.0, middle.y - 9.0},
                   text_width(words, small) + 8.0, 18.0, {.fill = colour::kPaper});
      picture_.text({middle.x, middle.y + 5.0}, words, {.size = small, .anchor = "middle"});
      return;
    }
    const Step& step = step_of(cell.ratio);
    draw_filled(corner, width, height, step.fill, is_marked(cell), tip);
    // A cell has its ratio and, below it, its seconds or, on a phone, only its mark.
    const double size = layout_.is_narrow ? (width < 48.0 ? 13.0 : 16.0)
                        : height < 56.0   ? 16.0
                                          : 21.0;
    std::string words = layout_.is_narrow ? "" : short_seconds(cell.seconds) + " s";
    if (is_marked(cell) && !words.empty()) words += " · ";
    if (is_marked(cell)) words += cell.state == RowState::kWinner ? "winner" : "tie";
    const double above = words.empty() ? 0.35 * size : height < 56.0 ? -1.0 : 1.0;
    picture_.text({middle.x, middle.y + above}, ratio_text(cell.ratio) + "×",
                  {.size = size, .fill = step.ink, .anchor = "middle", .is_bold = is_marked(cell)});
    picture_.text({middle.x, middle.y + (height < 56.0 ? 14.0 : 21.0)}, words,
                  {.size = small, .fill = step.ink, .anchor = "middle"});
  }

  // The frame is ink outside and white inside, so that it is seen on every fill and in grey.
  void draw_filled(Point corner, double width, double height, std::string_view fill, bool has_frame,
                   const std::string& tip = "") {
    picture_.box(corner, width, height, {.fill = fill, .radius = 3.0}, tip);
    if (!has_frame) return;
    picture_.box({corner.x + 1.5, corner.y + 1.5}, width - 3.0, height - 3.0,
                 {.stroke = colour::kInk, .stroke_width = 3.0, .radius = 3.0});
    picture_.box({corner.x + 4.0, corner.y + 4.0}, width - 8.0, height - 8.0,
                 {.stroke = colour::kPaper, .stroke_width = 2.0, .radius = 2.0});
  }

  // Draws the steps of the fill and the frame from a corner.
  void draw_legend(Point at, double step_width, double size) {
    double x = at.x;
    for (const Step& step : kFillSteps) {
      const bool is_last = &step == &kFillSteps.back();
      picture_.box(
          {x, at.y}, step_width, 12.0,
          {.fill = step.fill, .stroke = colour::kRule, .stroke_width = is_last ? 1.0 : 0.0});
      picture_.text(
          {x, at.y + 26.0}, step.from,
          {.size = size, .fill = colour::kMuted, .anchor = x == at.x ? "start" : "middle"});
      x += step_width;
    }
    if (!layout_.is_narrow) return;
    draw_filled({x + 24.0, at.y - 1.0}, 25.0, 16.0, kFillSteps.front().fill, true);
    picture_.text({x + 54.0, at.y + 11.0}, "winner or tie", {.size = 12.0});
  }

  void draw_sentences() {
    const double top = y_ + 16.0;
    double bottom = top + 92.0;
    for (std::size_t c = 0; c < columns(); ++c) {
      const AnswerWords words = answer_words(map_.columns[c]);
      const double x = x_of(c) + 2.0;
      const double room = cell_width() - 4.0;
      const double y = picture_.paragraph({x, top + 4.0}, words.use + ".", room, 18.0,
                                          {.size = 14.5, .is_bold = true});
      bottom = std::max(bottom, picture_.paragraph({x, y + 1.0}, capitalised(words.why) + ".", room,
                                                   18.0, {.size = 14.0}));
    }
    picture_.text({0.0, top + 4.0}, fmt::format("Time to {} accuracy,", target_text(map_.first())),
                  {.size = 13.0});
    picture_.text({0.0, top + 21.0}, "times the best of the column", {.size = 13.0});
    draw_legend({0.0, top + 32.0}, 42.0, 12.0);
    draw_filled({0.0, top + 67.5}, 30.0, 18.0, kFillSteps.front().fill, true);
    picture_.text({38.0, top + 81.0}, "winner, or too close to call", {.size = 13.0});
    y_ = bottom;
  }

  const StrategyMap& map_;
  const Layout layout_;
  Picture picture_;
  std::string hatch_;
  double y_ = 0.0;
};

}  // namespace

Picture map_figure(const StrategyMap& map, FigureForm form) { return MapDrawing(map, form).draw(); }

}  // namespace syncopate::bench
