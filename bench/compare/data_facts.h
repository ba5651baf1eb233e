// What a comparison records of its data set and its network, so that a later comparison or
// `report --verify` notices that one of them has changed.
#pragma once

#include <cstdint>
#include <string>

#include "bench/compare/compare_options.h"
#include "bench/compare/report/comparison.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct DataFacts {
  Chance chance;
  std::int64_t train_samples = 0;
  std::string data_hash;  // hash_of_all_samples()
  // The network with the flags for all runs; "" if there is none. network_layers: its operations in
  // order, or their number if there are many, and the number of parameters.
  std::string network_hash;
  std::string network_layers;
};

// Reads the whole data set once. Throws what the data set throws.
DataFacts data_facts_of(const CompareOptions& options, const DataSplits& data);

}  // namespace syncopate::bench
