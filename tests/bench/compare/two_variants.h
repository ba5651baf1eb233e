// The options of a small comparison, for the tests of its runs and of its folder, and the values
// of flags on a command line.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "bench/compare/compare_options.h"
#include "models/base/environment.h"

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

using Words = std::vector<std::string>;

// Returns the word after `flag`; "" if `flag` is missing.
inline std::string word_after(const Words& flags, const std::string& flag) {
  const auto at = std::ranges::find(flags, flag);
  return at == flags.end() || at + 1 == flags.end() ? "" : *(at + 1);
}

// Returns the environment that launch gives to the first worker of a run.
inline Environment environment_of(const RunSpec& run) {
  if (!run.variant.has_tasks()) return Environment(Environment::Variables{});
  return Environment({{"SYNCOPATE_ROLE", "worker"},
                      {"SYNCOPATE_INDEX", "0"},
                      {"SYNCOPATE_WORKERS", std::to_string(run.variant.workers)},
                      {"SYNCOPATE_SERVERS", std::to_string(run.variant.servers)},
                      {"SYNCOPATE_NONCE", "a"},
                      {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});
}

}  // namespace syncopate::bench
