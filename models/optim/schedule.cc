#include "models/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// The default learning rate at the start of the warm-up, as a fraction of the full rate.
constexpr double kWarmupStart = 0.01;

void require_option(bool holds, const std::string& what) {
  if (!holds) throw UsageError(what);
}

}  // namespace

Schedule::Schedule(ScheduleOptions options) : options_(std::move(options)) {
  const ScheduleOptions& o = options_;
  require_option(std::isfinite(o.learning_rate) && o.learning_rate > 0.0,
                 fmt::format("--learning-rate {}: expected a positive number", o.learning_rate));
  require_option(std::isfinite(o.total_epochs) && o.total_epochs > 0.0,
                 fmt::format("the run has {} epochs; expected a positive number", o.total_epochs));
  require_option(o.warmup_epochs >= 0.0 && o.warmup_epochs <= o.total_epochs,
                 fmt::format("--warmup-epochs {}: expected 0 to {:.3g}, the length of the run",
                             o.warmup_epochs, o.total_epochs));
  require_option(
      std::isfinite(o.factor) && o.factor > 0.0,
      fmt::format("the factor of the step schedule is {}; expected a positive number", o.factor));
  double last = 0.0;
  for (const double milestone : o.milestones) {
    require_option(
        std::isfinite(milestone) && milestone > last,
        fmt::format(
            "--lr-milestones: expected positive, ascending numbers of epochs; found {} after {}",
            milestone, last));
    last = milestone;
  }
}

double Schedule::learning_rate(double epochs) const {
  const ScheduleOptions& o = options_;
  if (epochs < o.warmup_epochs) {
    const double start = o.warmup_start > 0.0 ? o.warmup_start : o.learning_rate * kWarmupStart;
    return start + (o.learning_rate - start) * epochs / o.warmup_epochs;
  }
  switch (o.kind) {
    case ScheduleKind::kConstant:
      return o.learning_rate;
    case ScheduleKind::kStep: {
      const auto passed =
          std::upper_bound(o.milestones.begin(), o.milestones.end(), epochs) - o.milestones.begin();
      return o.learning_rate * std::pow(o.factor, static_cast<double>(passed));
    }
    case ScheduleKind::kCosine: {
      const double span = o.total_epochs - o.warmup_epochs;
      if (span <= 0.0) return o.learning_rate;
      const double progress = std::min(1.0, (epochs - o.warmup_epochs) / span);
      return o.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    }
  }
  return o.learning_rate;
}

}  // namespace syncopate
