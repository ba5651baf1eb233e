// Synchronised batch norm's sums: everybody's numbers by the host's collective, added in rank
// order.
#pragma once

#include <span>
#include <vector>

#include "models/backend/model.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// One thread only. The collective outlives it.
class GatheredStatistics final : public StatisticsReducer {
 public:
  explicit GatheredStatistics(Collective& collective) : collective_(collective) {}

  void sum(std::span<double> values) override;

 private:
  Collective& collective_;
  std::vector<double> all_;
};

}  // namespace syncopate
