// What a job promises about the values its workers compute with: the words behind --consistency and
// --staleness-rule, as plain data. The rules themselves are in bucket_rule.h.
#pragma once

#include <cstdint>

namespace syncopate::ps {

using WorkerId = int;

enum class Consistency : std::uint8_t {
  kSync,   // one update per step: the sum of all workers' gradients of the same values
  kSsp,    // a worker waits while it is more than `max_staleness` steps ahead of the slowest
  kAsync,  // nobody waits
};

// What becomes of a gradient whose values have been updated since they were read. Only where
// gradients are applied one by one (kSsp, kAsync). tau: version when applied minus version read.
enum class StalenessRule : std::uint8_t {
  kNone,
  // Learning rate / tau; tau 0 and 1 leave it. Source: Zhang et al. 2015, "Staleness-aware
  // async-SGD", section 3.2.
  kInverse,
  // g + lambda g g (w - w_read), element by element. Source: Zheng et al. 2017, "Asynchronous
  // stochastic gradient descent with delay compensation", eq. 10.
  kDelayCompensation,
  // The same with lambda / sqrt(mean square of g). Source: ibid., eq. 14.
  kDelayCompensationAdaptive,
};

struct ConsistencyOptions {
  Consistency consistency = Consistency::kSync;
  // kSsp. Source: Ho et al. 2013, conditions (1) to (4). Pushes are applied one by one, so 0 is not
  // kSync: the gradients of a round are applied in turn, at full learning rate.
  int max_staleness = 0;
  // kSync: so many of a step's gradients are not waited for; they are dropped when they come.
  // Source: Chen et al. 2016, "Revisiting distributed synchronous SGD", section 3.
  int backup_workers = 0;
  StalenessRule staleness_rule = StalenessRule::kNone;
  float compensation = 0.04F;  // lambda; adaptive: 2 is the paper's
  float mean_square_decay = 0.95F;
};

}  // namespace syncopate::ps
