#include "worker/train/metric_value.h"

#include <fmt/format.h>

namespace syncopate {

std::string to_text(const MetricValue& metric) {
  return metric.metric().is_share ? fmt::format("{:.2f}%", 100.0 * metric.value)
                                  : fmt::format("{:.5g}", metric.value);
}

}  // namespace syncopate
