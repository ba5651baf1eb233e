// Shows the progress of a run to the user: on a terminal as one line that is redrawn, elsewhere as
// a line every ten seconds. The training loops call it. The functions that format lines and limit
// their rate do not depend on a terminal, so that tests can pass their own writer, clock and width.
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
  std::string text;        // if not empty, this text is shown instead of the numbers
  std::int64_t epoch = 0;  // number of the epoch, from 1
  std::int64_t total_epochs = 0;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  double loss = 0.0;
  MetricValue metric;
  double samples_per_second = 0.0;
  double remaining_seconds = 0.0;
};

// The progress of work other than training, such as an evaluation, as a number of equal parts.
struct ActivityState {
  std::string_view what;  // name of the work, "evaluating"
  std::int64_t done = 0;
  std::int64_t total = 0;
};
// A function that is called after each part of some work. done: the number of parts that are done.
// total: the number of all parts.
using OnProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Shows the progress of a run. One thread only.
class ProgressDisplay {
 public:
  virtual ~ProgressDisplay() = default;
  // Updates the training line. It is cheap enough to be called after every step, because it draws
  // at most ten times a second on a terminal and every ten seconds elsewhere.
  virtual void update(const ProgressState& state) = 0;
  // Draws the progress of work other than training, at the same rate as the training line. On a
  // terminal, the line with this progress is removed when state.done reaches state.total.
  virtual void update(const ActivityState& state) = 0;
  // Writes a line that is not redrawn, such as the result of an evaluation.
  virtual void note(const std::string& line) = 0;
  // Ends the line that is redrawn, so that other output begins on a new line.
  virtual void finish() = 0;
};

// Returns a function that shows the progress of the work `what` on `display`, which must outlive
// the result.
OnProgress show_progress(ProgressDisplay& display, std::string_view what);

// Makes a display that writes to stderr. If `enabled` is false, it shows notes only.
std::unique_ptr<ProgressDisplay> make_progress_display(bool enabled);
// Makes a display that shows nothing, for the tasks other than the chief.
std::unique_ptr<ProgressDisplay> make_silent_display();

struct ProgressLineStyle {
  int columns = 80;
  bool unicode = true;  // false: the bar is drawn in ASCII
};

// Returns a progress line of at most `columns` columns, without a line end. In a narrow terminal
// the bar becomes shorter, then the bar is left out, and then the last fields. Example:
//   epoch 2/3 ━━━━━━━╸──── 812/937  loss 0.0612 acc 98.1%  41.2k samples/s  ETA 0:04
std::string format_progress_line(const ProgressState& state, const ProgressLineStyle& style);
// Returns the progress line of work other than training, such as "evaluating ━━━━━━━╸──── 12/79".
std::string format_progress_line(const ActivityState& state, const ProgressLineStyle& style);

// Returns the progress line for a log file, which has no bar and may have any width. Example:
//   epoch 2/3  step 812/937  loss 0.0612  acc 98.1%  41.2k samples/s  ETA 0:04
std::string format_progress_text(const ProgressState& state);
// Returns the log line of work other than training, such as "evaluating  12/79".
std::string format_progress_text(const ActivityState& state);

struct ProgressOutput {
  std::function<void(std::string_view)> write;
  std::function<std::chrono::steady_clock::time_point()> now;
  // Returns the screen width; called at every draw, because a window may be resized.
  std::function<int()> columns;
  bool unicode = true;
};

// Makes a display that redraws one line, at most ten times a second; notes scroll above it.
std::unique_ptr<ProgressDisplay> make_terminal_progress(ProgressOutput output);
// Makes a display that writes notes, and a line of progress every ten seconds. For work other than
// training the first line is written after two seconds. If `enabled` is false, it writes notes
// only.
std::unique_ptr<ProgressDisplay> make_plain_progress(ProgressOutput output, bool enabled);

}  // namespace syncopate
