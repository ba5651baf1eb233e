#include "ps/shard/statistics_sum.h"

#include <cstddef>

namespace syncopate::ps {

std::optional<std::vector<float>> StatisticsSum::add(WorkerId worker, std::uint64_t round,
                                                     std::int64_t samples,
                                                     std::vector<float> values) {
  if (round < round_) return std::nullopt;
  if (round > round_) {
    round_ = round;
    next_ = 0;
    early_.clear();
    sum_.clear();
    samples_ = 0.0;
  }
  if (worker < next_ || worker >= workers_) return std::nullopt;
  early_.insert_or_assign(worker, Part{samples, std::move(values)});
  for (auto next = early_.begin(); next != early_.end() && next->first == next_;
       next = early_.erase(next)) {
    add(next->second);
    ++next_;
  }
  if (next_ < workers_ || samples_ == 0.0) return std::nullopt;
  std::vector<float> average;
  average.reserve(sum_.size());
  for (const double sum : sum_) average.push_back(static_cast<float>(sum / samples_));
  return average;
}

void StatisticsSum::add(const Part& part) {
  if (part.samples == 0) return;
  const auto weight = static_cast<double>(part.samples);
  sum_.resize(part.values.size());
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    sum_[i] += weight * static_cast<double>(part.values[i]);
  }
  samples_ += weight;
}

}  // namespace syncopate::ps
