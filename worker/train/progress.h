// What a person sees while training runs: one line that is redrawn on a terminal, plain lines
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace syncopate {

struct ProgressState {
  std::string text;        // if not empty, it is shown instead of the numbers
  std::int64_t epoch = 0;  // from 1
  std::int64_t total_epochs = 0;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  double loss = 0.0;
  double accuracy = 0.0;
  double samples_per_second = 0.0;
  double remaining_seconds = 0.0;
};

// One thread only.
class ProgressDisplay {
 public:
  virtual ~ProgressDisplay() = default;
  // Cheap to call every step: draws at most ten times a second on a terminal, every ten seconds
  // elsewhere.
  virtual void update(const ProgressState& state) = 0;
  // A line that stays: an evaluation, a checkpoint.
  virtual void note(const std::string& line) = 0;
  // Ends the redrawn line.
  virtual void finish() = 0;
};

// Writes to stderr. `enabled` false shows notes only.
std::unique_ptr<ProgressDisplay> make_progress_display(bool enabled);
// Shows nothing: one task speaks for all.
std::unique_ptr<ProgressDisplay> make_silent_display();

// The words and the pace of the progress display, apart from the terminal they end up on. Called by
// progress.cc; tests bring a writer, a clock and a width of their own.

struct ProgressLineStyle {
  int columns = 80;
  bool unicode = true;  // else the bar is drawn in ASCII
};

// One line of at most `columns` columns, without an end: the bar shrinks first and then goes, then
// the line loses what stands last. "epoch 2/3 ━━━━━━━╸──── 812/937  loss 0.0612  acc 98.1%  41.2k
// samples/s  ETA 0:04"
std::string format_progress_line(const ProgressState& state, const ProgressLineStyle& style);

// The same for a log file: no bar, any width.
// "epoch 2/3  step 812/937  loss 0.0612  acc 98.1%  41.2k samples/s  ETA 0:04"
std::string format_progress_text(const ProgressState& state);

struct ProgressOutput {
  std::function<void(std::string_view)> write;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<int()> columns;  // asked at every draw: windows are resized
  bool unicode = true;
};

// Redraws one line, at most ten times a second; notes scroll above it.
std::unique_ptr<ProgressDisplay> make_terminal_progress(ProgressOutput output);
// A line every ten seconds, and the notes. `enabled` false: the notes only.
std::unique_ptr<ProgressDisplay> make_plain_progress(ProgressOutput output, bool enabled);

}  // namespace syncopate
