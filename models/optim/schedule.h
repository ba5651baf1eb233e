// The learning rate as a function of the job's progress in epochs. The rate does not depend on how
// many of the job's steps a single worker has made.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/base/enum_names.h"

namespace syncopate {

enum class ScheduleKind : std::uint8_t { kConstant, kStep, kCosine };
constexpr auto named_values(ScheduleKind /*type*/) {
  return std::array{Named{"constant", ScheduleKind::kConstant}, Named{"step", ScheduleKind::kStep},
                    Named{"cosine", ScheduleKind::kCosine}};
}

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0.01;
  double total_epochs = 1.0;
  double warmup_epochs = 0.0;  // the rate rises linearly from warmup_start to learning_rate
  double warmup_start = 0.0;   // 0: learning_rate / 100 is used
  // For kStep: the epochs, in ascending order, at which the learning rate is multiplied by
  // `factor`.
  std::vector<double> milestones;
  double factor = 0.1;
};

// The schedule of the learning rate. Thread-safe.
class Schedule {
 public:
  // Checks and stores the options. Throws UsageError when the learning rate, the length of the run
  // or the factor is not positive and finite. Throws UsageError, too, when milestones do not ascend
  // or the warm-up is longer than the run.
  explicit Schedule(ScheduleOptions options);
  // Returns the learning rate after `epochs` passes over the data; fractions of an epoch count.
  // Source: Loshchilov and Hutter 2017, eq. 5 without restarts, for the cosine; Goyal et al. 2017,
  // section 2.2, for the warm-up.
  double learning_rate(double epochs) const;

 private:
  ScheduleOptions options_;
};

}  // namespace syncopate
