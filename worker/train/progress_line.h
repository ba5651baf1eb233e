// The words and the pace of the progress display, apart from the terminal they end up on. Called by
// progress.cc; tests bring a writer, a clock and a width of their own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "worker/train/progress.h"

namespace syncopate {

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
