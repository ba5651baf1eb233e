// What a user sees while a run is at work: on a terminal one line that is redrawn, elsewhere a line
// every ten seconds. The train loops call it; the functions that make the text and keep the pace
// are apart from the terminal, so that tests bring their own writer, clock and width.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "worker/train/metric_value.h"

namespace syncopate {

struct ProgressState {
  std::string text;        // a text that is shown instead of the numbers; "": none
  std::int64_t epoch = 0;  // number of the epoch, from 1
  std::int64_t total_epochs = 0;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  double loss = 0.0;
  MetricValue metric;
  double samples_per_second = 0.0;
  double remaining_seconds = 0.0;
};

// The progress of work besides training, such as an evaluation, in parts of the same length.
struct ActivityState {
  std::string_view what;  // name of the work, "evaluating"
  std::int64_t done = 0;
  std::int64_t total = 0;
};
// Called after each part of some work with the parts that are done and all parts.
using OnProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Shows the progress of a run. One thread only.
class ProgressDisplay {
 public:
  virtual ~ProgressDisplay() = default;
  // Updates the training line, cheap enough for every step: draws at most ten times a second on a
  // terminal, every ten seconds elsewhere.
  virtual void update(const ProgressState& state) = 0;
  // Draws the progress of work besides training, as often as the training line. On a terminal the
  // line is removed when `done` reaches `total`.
  virtual void update(const ActivityState& state) = 0;
  // Writes a line that is not redrawn, such as the result of an evaluation.
  virtual void note(const std::string& line) = 0;
  // Ends the redrawn line of the display, so that other output begins on a new line.
  virtual void finish() = 0;
};

// Returns a display of the work that `what` names. `display` must outlive the result.
OnProgress show_progress(ProgressDisplay& display, std::string_view what);

// Makes a display that writes to stderr. `enabled` false shows notes only.
std::unique_ptr<ProgressDisplay> make_progress_display(bool enabled);
// Makes a display that shows nothing, for the tasks other than the chief.
std::unique_ptr<ProgressDisplay> make_silent_display();

struct ProgressLineStyle {
  int columns = 80;
  bool unicode = true;  // false: the bar is drawn in ASCII
};

// Returns a progress line of at most `columns` columns, without a line end. In a narrow terminal
// the bar shrinks and then goes, and after it the last fields. "epoch 2/3 ━━━━━━━╸──── 812/937
// loss 0.0612 acc 98.1%  41.2k samples/s  ETA 0:04"
std::string format_progress_line(const ProgressState& state, const ProgressLineStyle& style);
// Returns the line of work besides training, such as "evaluating ━━━━━━━╸──── 12/79".
std::string format_progress_line(const ActivityState& state, const ProgressLineStyle& style);

// Returns the line for a log file: without a bar and of any width. "epoch 2/3  step 812/937  loss
// 0.0612  acc 98.1%  41.2k samples/s  ETA 0:04"
std::string format_progress_text(const ProgressState& state);
// Returns the log line of work besides training, such as "evaluating  12/79".
std::string format_progress_text(const ActivityState& state);

struct ProgressOutput {
  std::function<void(std::string_view)> write;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<int()> columns;  // screen width, asked at every draw: windows are resized
  bool unicode = true;
};

// Makes a display that redraws one line, at most ten times a second; notes scroll above it.
std::unique_ptr<ProgressDisplay> make_terminal_progress(ProgressOutput output);
// Makes a display that writes the notes, and a line of progress every ten seconds; for work besides
// training the first line comes after two seconds. `enabled` false: writes the notes only.
std::unique_ptr<ProgressDisplay> make_plain_progress(ProgressOutput output, bool enabled);

}  // namespace syncopate
