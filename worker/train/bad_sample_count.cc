#include "worker/train/bad_sample_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace syncopate {

void BadSampleCount::end_round(std::int64_t first, std::int64_t last, std::int64_t num_bad) {
  const std::map<std::int64_t, std::int64_t> own = std::exchange(own_, {});
  if (limit_ == nullptr) return;
  if (first < last && num_bad > 0) {
    std::vector<double> mine(static_cast<std::size_t>(last - first));
    for (const auto& [epoch, count] : own) {
      if (epoch < last) mine[static_cast<std::size_t>(epoch - first)] += static_cast<double>(count);
    }
    const std::vector<double> all = job_.gather(mine);
    for (std::int64_t epoch = first; epoch < last; ++epoch) {
      double sum = 0.0;
      for (auto i = static_cast<std::size_t>(epoch - first); i < all.size(); i += mine.size()) {
        sum += all[i];
      }
      add(epoch, std::llround(sum));
      num_bad -= std::llround(sum);
    }
  }
  // The last step ends the round, so its bad samples belong to the last epoch.
  add(last, num_bad);
}

void BadSampleCount::add(std::int64_t epoch, std::int64_t num_bad) {
  if (epoch > epoch_) {
    epoch_ = epoch;
    num_bad_ = 0;
  }
  num_bad_ += num_bad;
  most_ = std::max(most_, num_bad_);
  limit_->require_few(num_bad_, fmt::format("epoch {}", epoch + 1));
}

}  // namespace syncopate
