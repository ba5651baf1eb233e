#include "models/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate {
namespace {

// Where warm-up begins when nobody says, as a fraction of the full rate.
constexpr double kWarmupStart = 0.01;

void require(bool holds, const std::string& what) {
  if (!holds) throw UsageError(what);
}

}  // namespace

Schedule::Schedule(ScheduleOptions options) : options_(std::move(options)) {
  const ScheduleOptions& o = options_;
  require(std::isfinite(o.learning_rate) && o.learning_rate > 0.0,
          "--learning-rate " + shortest_text(o.learning_rate) + ": expected a positive number");
  require(std::isfinite(o.total_epochs) && o.total_epochs > 0.0,
          "the run has " + shortest_text(o.total_epochs) + " epochs: expected a positive number");
  require(o.warmup_epochs >= 0.0 && o.warmup_epochs <= o.total_epochs,
          "--warmup-epochs " + shortest_text(o.warmup_epochs) + ": expected 0 to " +
              shortest_text(o.total_epochs) + ", the length of the run");
  require(
      std::isfinite(o.factor) && o.factor > 0.0,
      "the step schedule's factor is " + shortest_text(o.factor) + ": expected a positive number");
  double last = 0.0;
  for (const double milestone : o.milestones) {
    require(std::isfinite(milestone) && milestone > last,
            "the step schedule's milestones must be positive and ascending, found " +
                shortest_text(milestone) + " after " + shortest_text(last));
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

ScheduleKind parse_schedule(const std::string& text) {
  if (text == "constant") return ScheduleKind::kConstant;
  if (text == "step") return ScheduleKind::kStep;
  if (text == "cosine") return ScheduleKind::kCosine;
  throw UsageError("--lr-schedule " + text +
                   ": no such schedule; choose one of constant, step, cosine");
}

}  // namespace syncopate
