#include "worker/train/progress.h"

#include <fmt/format.h>

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/unique_handle.h"

namespace syncopate {

namespace {

constexpr int kLongestBar = 24;
constexpr int kShortestBar = 6;

template <typename... Values>
std::string print(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string format_rate(double rate) {
  if (!std::isfinite(rate) || rate < 0.0) return "- samples/s";
  if (rate >= 999'950.0) return print("%.1fM samples/s", rate / 1e6);
  if (rate >= 999.5) return print("%.1fk samples/s", rate / 1e3);
  return print("%.0f samples/s", rate);
}

std::string format_remaining(double seconds) {
  constexpr double kTooLong = 1e8;
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > kTooLong) return "ETA -:--";
  const auto total = static_cast<long>(std::ceil(seconds));
  const long hours = total / 3600;
  const long minutes = total / 60 % 60;
  if (hours > 0) return print("ETA %ld:%02ld:%02ld", hours, minutes, total % 60);
  return print("ETA %ld:%02ld", minutes, total % 60);
}

std::string of_total(std::int64_t done, std::int64_t total) {
  return fmt::format("{}/{}", done, total);
}

// Returns the fields that follow the step count on the progress line, the most important one first.
std::vector<std::string> score_fields(const ProgressState& state) {
  if (state.samples_per_second == 0.0 && state.loss == 0.0) return {};  // before the first step
  const bool is_share = state.metric.metric().is_share;
  return {print("loss %.4f", state.loss),
          is_share ? print("acc %.1f%%", 100.0 * state.metric.value)
                   : fmt::format("{} {}", state.metric.name(), to_text(state.metric)),
          format_rate(state.samples_per_second), format_remaining(state.remaining_seconds)};
}

// Draws a bar of `columns` columns. Unicode can show half a column.
std::string draw_bar(double fraction, int columns, bool unicode) {
  const int half_cells = static_cast<int>(std::lround(fraction * 2.0 * columns));
  const int full = half_cells / 2;
  std::string bar;
  for (int i = 0; i < full; ++i) bar += unicode ? "━" : "#";
  int drawn = full;
  if (half_cells % 2 == 1) {
    bar += unicode ? "╸" : "-";
    ++drawn;
  }
  for (int i = drawn; i < columns; ++i) bar += unicode ? "─" : ".";
  return bar;
}

// Returns the part that is done, done / total in [0, 1], or 0 for an unknown total.
double fraction_of(std::int64_t done, std::int64_t total) {
  if (total <= 0) return 0.0;
  return std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
}

// Says when a display that redraws every `interval` is due.
class Pace {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Pace(std::chrono::milliseconds interval) : interval_(interval) {}
  bool due(TimePoint now) {
    if (now < next_) return false;
    next_ = now + interval_;
    return true;
  }
  void start(TimePoint now) { start(now, interval_); }
  void start(TimePoint now, std::chrono::milliseconds delay) { next_ = now + delay; }

 private:
  std::chrono::milliseconds interval_;
  TimePoint next_ = TimePoint::min();
};

class TerminalProgress final : public ProgressDisplay {
 public:
  explicit TerminalProgress(ProgressOutput output) : output_(std::move(output)) {}
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  // Ends the redrawn line, so that the message of an exception gets a line of its own.
  ~TerminalProgress() override {
    if (drawn_ || shows_activity_) output_.write("\n");
  }

  void update(const ProgressState& state) override {
    last_ = state;
    if (pace_.due(output_.now())) draw();
  }

  void update(const ActivityState& state) override {
    const bool is_over = state.done >= state.total;
    if (!is_over && pace_.due(output_.now())) {
      output_.write(kStartOfLine + format_progress_line(state, style()) + kClearToEnd);
      shows_activity_ = true;
    } else if (is_over && shows_activity_) {
      clear_activity();
    }
  }

  void note(const std::string& line) override {
    output_.write(kStartOfLine + std::string(kClearToEnd) + line + "\n");
    shows_activity_ = false;
    if (drawn_) draw();
  }

  void finish() override {
    if (!drawn_) {
      if (shows_activity_) clear_activity();
      return;
    }
    draw();  // the last state may not have been drawn yet
    output_.write("\n");
    drawn_ = false;
  }

 private:
  static constexpr const char* kStartOfLine = "\r";
  static constexpr const char* kClearToEnd = "\x1b[K";

  // The screen's last column stays empty: some terminals wrap as soon as it is written.
  ProgressLineStyle style() const {
    return {.columns = output_.columns() - 1, .unicode = output_.unicode};
  }

  void draw() {
    output_.write(kStartOfLine + format_progress_line(last_, style()) + kClearToEnd);
    drawn_ = true;
    shows_activity_ = false;
  }

  void clear_activity() {
    shows_activity_ = false;
    if (drawn_) {
      draw();
    } else {
      output_.write(kStartOfLine + std::string(kClearToEnd));
    }
  }

  ProgressOutput output_;
  Pace pace_{std::chrono::milliseconds(100)};
  ProgressState last_;
  bool drawn_ = false;  // whether the training line is on the screen
  bool shows_activity_ = false;
};

class PlainProgress final : public ProgressDisplay {
 public:
  PlainProgress(ProgressOutput output, bool enabled)
      : output_(std::move(output)), enabled_(enabled) {
    pace_.start(output_.now());
  }

  void update(const ProgressState& state) override {
    if (enabled_ && pace_.due(output_.now())) output_.write(format_progress_text(state) + "\n");
  }
  void update(const ActivityState& state) override {
    // Work other than training that takes less than this time is not worth a line in a log.
    constexpr std::chrono::seconds kFirstLine(2);
    const bool begins = state.what != activity_ || state.done <= activity_done_;
    activity_ = state.what;
    activity_done_ = state.done;
    if (begins) activity_pace_.start(output_.now(), kFirstLine);
    if (!enabled_ || state.done >= state.total || !activity_pace_.due(output_.now())) return;
    output_.write(format_progress_text(state) + "\n");
  }
  void note(const std::string& line) override { output_.write(line + "\n"); }
  void finish() override {}

 private:
  ProgressOutput output_;
  bool enabled_;
  Pace pace_{std::chrono::seconds(10)};
  std::string activity_;
  std::int64_t activity_done_ = 0;
  Pace activity_pace_{std::chrono::seconds(10)};
};

}  // namespace

std::string format_progress_line(const ProgressState& state, const ProgressLineStyle& style) {
  if (!state.text.empty()) {
    return state.text.substr(0, static_cast<std::size_t>(std::max(style.columns, 0)));
  }
  const std::string epoch = "epoch " + of_total(state.epoch, state.total_epochs);
  const std::string steps = of_total(state.step, state.total_steps);
  std::string tail = steps;
  for (const std::string& field : score_fields(state)) tail += "  " + field;

  // Everything on the line except the bar is ASCII, so a byte is a column.
  const int for_bar = style.columns - static_cast<int>(epoch.size() + tail.size()) - 2;
  if (for_bar >= kShortestBar) {
    return epoch + " " +
           draw_bar(fraction_of(state.step, state.total_steps), std::min(for_bar, kLongestBar),
                    style.unicode) +
           " " + tail;
  }
  const auto columns = static_cast<std::size_t>(std::max(style.columns, 0));
  std::string line = epoch + " " + steps;
  for (const std::string& field : score_fields(state)) {
    if (line.size() + 2 + field.size() > columns) break;
    line += "  " + field;
  }
  return line.substr(0, columns);
}

std::string format_progress_line(const ActivityState& state, const ProgressLineStyle& style) {
  const std::string what(state.what);
  const std::string counts = of_total(state.done, state.total);
  const int for_bar = style.columns - static_cast<int>(what.size() + counts.size()) - 2;
  if (for_bar >= kShortestBar) {
    return what + " " +
           draw_bar(fraction_of(state.done, state.total), std::min(for_bar, kLongestBar),
                    style.unicode) +
           " " + counts;
  }
  return (what + " " + counts).substr(0, static_cast<std::size_t>(std::max(style.columns, 0)));
}

std::string format_progress_text(const ActivityState& state) {
  return std::string(state.what) + "  " + of_total(state.done, state.total);
}

OnProgress show_progress(ProgressDisplay& display, std::string_view what) {
  return [&display, what = std::string(what)](std::int64_t done, std::int64_t total) {
    display.update(ActivityState{.what = what, .done = done, .total = total});
  };
}

std::string format_progress_text(const ProgressState& state) {
  if (!state.text.empty()) return state.text;
  std::string line = "epoch " + of_total(state.epoch, state.total_epochs) + "  step " +
                     of_total(state.step, state.total_steps);
  for (const std::string& field : score_fields(state)) line += "  " + field;
  return line;
}

std::unique_ptr<ProgressDisplay> make_terminal_progress(ProgressOutput output) {
  return std::make_unique<TerminalProgress>(std::move(output));
}

std::unique_ptr<ProgressDisplay> make_plain_progress(ProgressOutput output, bool enabled) {
  return std::make_unique<PlainProgress>(std::move(output), enabled);
}

namespace {

struct LocaleTraits {
  using Type = locale_t;
  static Type none() noexcept { return nullptr; }
  static void close(Type locale) noexcept { freelocale(locale); }
};

// Reads the user's character set without a change of the process's locale, so that numbers keep
// their decimal points.
bool stderr_is_unicode() {
  const UniqueHandle<LocaleTraits> locale(newlocale(LC_CTYPE_MASK, "", nullptr));
  return locale && std::string_view(nl_langinfo_l(CODESET, locale.get())) == "UTF-8";
}

int stderr_columns() {
  constexpr int kDefaultColumns = 80;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

// Writes the whole text at once, so that lines of several processes do not mix.
void write_to_stderr(std::string_view text) { std::cerr << text << std::flush; }

class SilentDisplay final : public ProgressDisplay {
 public:
  void update(const ProgressState& /*state*/) override {}
  void update(const ActivityState& /*state*/) override {}
  void note(const std::string& /*line*/) override {}
  void finish() override {}
};

}  // namespace

std::unique_ptr<ProgressDisplay> make_progress_display(bool enabled) {
  ProgressOutput output = {.write = write_to_stderr,
                           .now = [] { return std::chrono::steady_clock::now(); },
                           .columns = stderr_columns,
                           .unicode = stderr_is_unicode()};
  if (enabled && isatty(STDERR_FILENO) != 0) return make_terminal_progress(std::move(output));
  return make_plain_progress(std::move(output), enabled);
}

std::unique_ptr<ProgressDisplay> make_silent_display() { return std::make_unique<SilentDisplay>(); }

}  // namespace syncopate
