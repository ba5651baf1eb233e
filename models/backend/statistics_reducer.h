// What synchronised batch norm sums through. Identity here; a strategy with several replicas
// implements it on a communicator of its own. Lanes of one replica are summed before, in lane
// order.
#pragma once

#include <span>

namespace syncopate {

class StatisticsReducer {
 public:
  virtual ~StatisticsReducer() = default;
  // Sums `values` over all replicas, in place, in rank order, at fixed points of every step.
  // Throws PeerError.
  virtual void sum(std::span<double> values) = 0;
};

}  // namespace syncopate
