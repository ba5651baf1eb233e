// The consistency of a job, as plain data: the choices behind --consistency and --staleness-rule.
// consistency_rule.h implements them.
#pragma once

#include <array>
#include <cstdint>

#include "models/base/enum_names.h"

namespace syncopate::ps {

using WorkerId = int;

enum class Consistency : std::uint8_t {
  kSync,  // one update per step: the sum of all workers' gradients of the same values
  // Stale synchronous parallel: a worker waits while it is more than `max_staleness` steps ahead of
  // the slowest worker.
  kSsp,
  kAsync,  // no worker waits
  // Displacements that arrive together make one update, with their mean. It begins when `quorum`
  // workers have pushed and `grace` has passed since, or when all workers have pushed. Later
  // displacements belong to the next update; none is dropped. Source: Decoupled DiLoCo
  // (arXiv:2604.21428).
  kQuorum,
};
constexpr auto named_values(Consistency /*type*/) {
  return std::array{Named{"async", Consistency::kAsync}, Named{"ssp", Consistency::kSsp},
                    Named{"quorum", Consistency::kQuorum}, Named{"sync", Consistency::kSync}};
}

// What happens to a stale gradient. A gradient is stale if its worker read values that have been
// updated since then. Rules apply only under kSsp and kAsync, which apply gradients one by one; the
// last three require kAsync. tau is the version of the values when the gradient is applied minus
// the version that the worker read.
enum class StalenessRule : std::uint8_t {
  kNone,
  // The rule multiplies the learning rate by 1 / tau, or by 1 if tau is 0. Source: Zhang et al.
  // 2015, "Staleness-aware async-SGD", section 3.2.
  kInverse,
  // The rule replaces a gradient g by g + lambda g g (w - w_read), element by element: w are the
  // current values, w_read the values that the worker read. lambda is
  // ConsistencyOptions::compensation. Source: Zheng et al. 2017, "Asynchronous stochastic gradient
  // descent with delay compensation", eq. 10.
  kDelayCompensation,
  // Like kDelayCompensation, but lambda / sqrt(mean square of g) replaces lambda. Source: Zheng et
  // al. 2017, eq. 14.
  kDelayCompensationAdaptive,
  // The rule drops a gradient if tau is at least ConsistencyOptions::rule_number. Source: Maranjyan
  // et al. 2025, "Ringmaster ASGD", algorithm 4 (arXiv:2501.16168).
  kRingmaster,
  // The rule collects ConsistencyOptions::rule_number gradients of the same values, then makes one
  // update with their mean. It drops a gradient of other values. Source: Tyurin and Richtarik 2023,
  // "Optimal time complexities of parallel stochastic optimization methods under a fixed
  // computation model", Rennala SGD (arXiv:2305.12387).
  kRennala,
  // The momentum of a gradient counts as if the gradient had arrived in its order. Source: Shi et
  // al. 2024, "Ordered momentum for asynchronous SGD" (arXiv:2407.19234).
  kOrderedMomentum,
};
constexpr auto named_values(StalenessRule /*type*/) {
  return std::array{Named{"none", StalenessRule::kNone},
                    Named{"inverse", StalenessRule::kInverse},
                    Named{"dc", StalenessRule::kDelayCompensation},
                    Named{"dc-adaptive", StalenessRule::kDelayCompensationAdaptive},
                    Named{"ringmaster", StalenessRule::kRingmaster},
                    Named{"rennala", StalenessRule::kRennala},
                    Named{"ordered-momentum", StalenessRule::kOrderedMomentum}};
}

// Returns whether ConsistencyOptions::rule_number belongs to the rule.
constexpr bool has_number(StalenessRule rule) noexcept {
  return rule == StalenessRule::kRingmaster || rule == StalenessRule::kRennala;
}
inline constexpr std::int64_t kMostRuleNumber = std::int64_t{1} << 31;

// Returns the default lambda of delay compensation: 2 for the adaptive rule, 0.04 for other rules.
// Source of 2: Zheng et al. 2017, lambda_0 of the adaptive rule.
constexpr float compensation_of(StalenessRule rule) noexcept {
  return rule == StalenessRule::kDelayCompensationAdaptive ? 2.0F : 0.04F;
}

inline constexpr double kMostGrace = 86'400.0;

struct ConsistencyOptions {
  Consistency consistency = Consistency::kSync;
  // The staleness bound of kSsp, in steps. Source: Ho et al. 2013, conditions (1) to (4). A bound
  // of 0 is not the same as kSync: the gradients of a step are still applied one by one, each at
  // the full learning rate.
  int max_staleness = 0;
  // For kSync: the number of slowest gradients of each step that the update does not wait for.
  // These gradients are dropped when they arrive. Source: Chen et al. 2016, "Revisiting distributed
  // synchronous SGD", section 3.
  int backup_workers = 0;
  // For kQuorum: an update waits for the displacements of `quorum` workers, then `grace` seconds
  // longer for the others. 0: it waits for all workers. No update waits for a worker that is away.
  int quorum = 0;
  double grace = 0.0;  // in [0, kMostGrace]
  StalenessRule staleness_rule = StalenessRule::kNone;
  std::int64_t rule_number = 1;  // of the rule if has_number(), in [1, kMostRuleNumber]
  float compensation = compensation_of(StalenessRule::kNone);  // lambda of delay compensation
  float mean_square_decay = 0.95F;
};

// Checks the options. Throws UsageError for options that contradict each other or are out of range.
void check_consistency(const ConsistencyOptions& options);

}  // namespace syncopate::ps
