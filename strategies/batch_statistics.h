// Batch norm's statistics of several replicas: the sums of a step (--batch-norm sync), and the
// average of running statistics.
#pragma once

#include <span>
#include <vector>

#include "models/backend/model.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// Sums statistics over all ranks by the host's collective, in rank order. One thread only. The
// collective outlives it.
class GatheredStatistics final : public StatisticsReducer {
 public:
  explicit GatheredStatistics(Collective& collective) : collective_(collective) {}

  void sum(std::span<double> values) override;

 private:
  Collective& collective_;
  std::vector<double> all_;
};

// Writes the average of all replicas' running statistics to `average`, weighted by `weights`. all:
// the statistics of replica 0, then those of replica 1 and so on, average.size() numbers each.
// Sums in replica order, so that the result has the same bits under every strategy. Precondition:
// the sum of weights is not 0.
void average_running_statistics(std::span<const double> weights, std::span<const float> all,
                                std::span<float> average);

}  // namespace syncopate
