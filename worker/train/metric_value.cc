#include "worker/train/metric_value.h"

#include <fmt/format.h>

namespace syncopate {

std::string to_text(const MetricValue& metric) {
  std::string text = metric.metric().is_share ? fmt::format("{:.2f}%", 100.0 * metric.value)
                                              : fmt::format("{:.5g}", metric.value);
  if (metric.mean_iou) text += fmt::format(", mean IoU {:.2f}%", 100.0 * *metric.mean_iou);
  return text;
}

}  // namespace syncopate
