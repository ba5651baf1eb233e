#include "bench/compare/virtual_run.h"

#include "bench/compare/virtual/virtual_training.h"
#include "models/base/errors.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {

Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      const std::function<void(double)>& progress) {
  if (!run.refusal.empty()) throw UsageError(run.refusal);
  const TrainOptions& train = run.train;
  const Graph graph = network_for_data(train.model, train.data, data);
  return train_virtually({.options = train,
                          .workers = run.variant.workers,
                          .servers = run.variant.servers,
                          .data = data,
                          .graph = graph,
                          .faults = run.faults},
                         metrics, progress);
}

}  // namespace syncopate::bench
