#include "ps/shard/running_statistics.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace syncopate::ps {
namespace {

constexpr std::size_t kKeptStatistics = 2;

}  // namespace

RunningStatistics::RunningStatistics(std::vector<float> first, std::size_t most_bytes)
    : most_workers_(std::max<std::size_t>(
          1,
          most_bytes / std::max<std::size_t>(1, kKeptStatistics * first.size() * sizeof(float)))),
      average_(std::move(first)) {}

void RunningStatistics::add(WorkerId worker, std::uint64_t sequence, std::int64_t samples,
                            std::vector<float> values) {
  if (!workers_.contains(worker) && workers_.size() == most_workers_) return;
  Worker& of = workers_[worker];
  of.samples += samples;
  if (values.empty()) return;
  of.kept.emplace_back(sequence, std::move(values));
  if (of.kept.size() > kKeptStatistics) of.kept.pop_front();
}

const std::vector<float>& RunningStatistics::average(std::span<const WorkerClock> clocks) {
  std::vector<double> sum(average_.size(), 0.0);
  double weight = 0.0;
  for (const auto& [worker, of] : workers_) {
    const auto entry = std::ranges::find(clocks, worker, &WorkerClock::worker);
    const std::vector<float>* newest = nullptr;
    for (const auto& [sequence, values] : of.kept) {
      if (entry == clocks.end() || sequence <= entry->sequence) newest = &values;
    }
    if (newest == nullptr || newest->size() != sum.size()) continue;
    const auto samples = static_cast<double>(of.samples);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += samples * static_cast<double>((*newest)[i]);
    }
    weight += samples;
  }
  if (weight == 0.0) return average_;
  for (std::size_t i = 0; i < sum.size(); ++i) average_[i] = static_cast<float>(sum[i] / weight);
  return average_;
}

}  // namespace syncopate::ps
