#include "bench/compare/virtual_run.h"

#include <string>
#include <variant>

#include "bench/compare/virtual/train.h"
#include "deploy/cli/train_options.h"
#include "models/base/environment.h"
#include "models/base/errors.h"
#include "worker/run/network_for_data.h"

namespace syncopate::bench {
namespace {

// What launch would tell the first worker.
Environment environment_of(const Variant& variant) {
  if (!variant.has_tasks()) return Environment(Environment::Variables{});
  return Environment(Environment::Variables{{"SYNCOPATE_ROLE", "worker"},
                                            {"SYNCOPATE_INDEX", "0"},
                                            {"SYNCOPATE_WORKERS", std::to_string(variant.workers)},
                                            {"SYNCOPATE_SERVERS", std::to_string(variant.servers)},
                                            {"SYNCOPATE_NONCE", "virtual"},
                                            {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});
}

}  // namespace

TrainOptions train_options_of(const RunSpec& run) {
  const CommandOptions parsed = parse_train_options(run.flags, environment_of(run.variant));
  const auto* const train = std::get_if<TrainOptions>(&parsed);
  if (train == nullptr) throw UsageError("--help is no flag of a run");
  return *train;
}

Summary run_virtually(const RunSpec& run, const DataSplits& data, MetricsWriter& metrics,
                      const std::function<void(double)>& progress) {
  const TrainOptions train = train_options_of(run);
  const Graph graph = network_for_data(train.model, train.data, data);
  return train_virtually({.options = train,
                          .workers = run.variant.workers,
                          .servers = run.variant.servers,
                          .data = data,
                          .graph = graph,
                          .trouble = run.trouble},
                         metrics, progress);
}

}  // namespace syncopate::bench
