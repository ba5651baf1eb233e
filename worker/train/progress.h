// What a person sees while training runs: one line that is redrawn on a terminal, plain lines
// elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace syncopate {

struct ProgressState {
  std::string text;  // if not empty, it is shown instead of the numbers
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

}  // namespace syncopate
