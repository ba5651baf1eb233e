#include "worker/train/staleness_text.h"

#include <array>
#include <cstdio>

namespace syncopate {
namespace {

std::string two_decimals(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", number);
  return text.data();
}

}  // namespace

ps::StalenessHistogram merge_staleness(std::span<const WorkerStaleness> workers) {
  ps::StalenessHistogram all;
  for (const WorkerStaleness& worker : workers) all.merge(worker.histogram);
  return all;
}

std::string describe_staleness(std::span<const WorkerStaleness> workers) {
  const ps::StalenessHistogram all = merge_staleness(workers);
  std::string text = "mean " + two_decimals(all.mean()) + ", max " + std::to_string(all.max()) +
                     " over " + std::to_string(all.count()) + " pushes";
  if (workers.size() < 2) return text;
  text += "; by worker";
  for (const WorkerStaleness& worker : workers) text += " " + two_decimals(worker.histogram.mean());
  return text;
}

}  // namespace syncopate
