#include "bench/compare/data_facts.h"

#include "bench/compare/chance.h"
#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

std::string network_hash_of(const CompareOptions& options, const DataSplits& data) {
  const TrainOptions& shared = options.shared.options;
  try {
    return network_hash(to_text(network_for_data(options.model, options.data, data, shared.network,
                                                 shared.label_smoothing)));
  } catch (const UsageError&) {
    return "";  // the plan of the runs reports the error, unless each run has its own data
  }
}

}  // namespace

DataFacts data_facts_of(const CompareOptions& options, const DataSplits& data) {
  return {.chance = chance_of(data),
          .data_hash = hash_of_all_samples(data),
          .network_hash = network_hash_of(options, data)};
}

}  // namespace syncopate::bench
