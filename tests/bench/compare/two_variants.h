// The options of a small comparison, for the tests of its runs and of its folder.
#pragma once

#include "bench/compare/compare_options.h"

namespace syncopate::bench {

// Returns two variants of four workers with two seeds and batches of 10 samples.
inline CompareOptions two_variants() {
  CompareOptions options;
  for (const char* word : {"mirrored", "parameter-server:sync+backup:1"}) {
    options.variants.push_back(parse_variant(word, 4, 2));
  }
  options.seeds = 2;
  options.batch_size_per_replica = 10;
  options.evaluations = 5;
  return options;
}

}  // namespace syncopate::bench
