#include "strategies/batch_statistics.h"

#include <algorithm>
#include <cstddef>

namespace syncopate {

void GatheredStatistics::sum(std::span<double> values) {
  const auto n = static_cast<std::size_t>(collective_.size());
  if (n == 1) return;
  all_.resize(n * values.size());
  collective_.all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all_)));
  std::copy_n(all_.begin(), values.size(), values.begin());
  for (std::size_t r = 1; r < n; ++r) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += all_[r * values.size() + i];
  }
}

void average_running_statistics(std::span<const double> weights, std::span<const float> all,
                                std::span<float> average) {
  double total = 0.0;
  for (const double weight : weights) total += weight;
  for (std::size_t i = 0; i < average.size(); ++i) {
    double sum = 0.0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      sum += weights[r] * static_cast<double>(all[r * average.size() + i]);
    }
    average[i] = static_cast<float>(sum / total);
  }
}

}  // namespace syncopate
