// A value of a loss's main metric, such as "accuracy 98.10%" or "mae 0.0312". It is a mean over
// samples; for label maps it is a mean over pixels, with the mean IoU beside it. Used by lines,
// metrics files, rules of evaluations and commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/graph/graph.h"

namespace syncopate {

struct MetricValue {
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  double value = 0.0;
  std::optional<double> mean_iou = {};  // of an evaluation with label maps; nothing for others

  const LossMetric& metric() const noexcept { return metrics(loss)[kMainMetric]; }
  std::string_view name() const noexcept { return metric().name; }
  bool operator==(const MetricValue&) const = default;
};

// Returns the value without its name, a share in percent, another number with five digits, and the
// mean IoU: "98.10%, mean IoU 93.25%".
std::string to_text(const MetricValue& metric);

}  // namespace syncopate
