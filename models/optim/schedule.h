// The learning rate as a function of progress, so that it follows samples and not anybody's local
// steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate {

enum class ScheduleKind : std::uint8_t { kConstant, kStep, kCosine };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0.01;
  double total_epochs = 1.0;
  double warmup_epochs = 0.0;  // linear from warmup_start to learning_rate
  double warmup_start = 0.0;   // 0: learning_rate / 100
  // kStep: at each of these epochs the rate is multiplied by `factor`.
  std::vector<double> milestones;
  double factor = 0.1;
};

// Thread-safe.
class Schedule {
 public:
  // Throws UsageError: rate not finite or not positive, milestones not ascending, warm-up longer
  // than the run.
  explicit Schedule(ScheduleOptions options);
  // The rate at `epochs` passes over the data (a fraction within an epoch counts).
  // Source: cosine, Loshchilov and Hutter 2017, eq. 5 without restarts; warm-up, Goyal et al. 2017,
  // section 2.2.
  double learning_rate(double epochs) const;

 private:
  ScheduleOptions options_;
};

// "constant", "step", "cosine". Throws UsageError listing them.
ScheduleKind parse_schedule(const std::string& text);

}  // namespace syncopate
