// A value of the main metric of a loss, such as "accuracy 98.10%" or "mae 0.0312". The value is a
// mean over samples. For label maps, the value is a mean over pixels, and MetricValue also has the
// mean IoU. Used by progress lines, metrics files, evaluation rules and commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/graph/graph.h"

namespace syncopate {

struct MetricValue {
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  double value = 0.0;
  std::optional<double> mean_iou = {};  // for evaluations of label maps; nullopt for others

  const LossMetric& metric() const noexcept { return metrics(loss)[kMainMetric]; }
  std::string_view name() const noexcept { return metric().name; }
  bool operator==(const MetricValue&) const = default;
};

// Returns the value and the mean IoU without the metric's name: "98.10%, mean IoU 93.25%".
// Fractions are in percent; other numbers have five digits.
std::string to_text(const MetricValue& metric);

}  // namespace syncopate
