// Plans the runs of a comparison with their options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/compare_options.h"

namespace syncopate::bench {

// Returns the number of updates of one run. Throws UsageError if the samples are fewer than those
// of one update. In a synchronous variant, an update trains the samples of all workers. With
// Budget::kSeconds, returns the updates of options.epochs epochs, from which only the distance
// between evaluations is computed.
std::int64_t updates_of(const CompareOptions& options, const Variant& variant,
                        std::int64_t train_samples);

// Returns the samples of a worker's step, or of a micro-batch of a pipeline. Throws UsageError if
// the batch of an update cannot be divided among the workers.
std::int64_t worker_batch_of(const CompareOptions& options, const Variant& variant);

// Returns the samples of an update of the variant.
std::int64_t samples_of_update(const CompareOptions& options, const Variant& variant);

// Returns the batch that is equal in all variants, such as "32 samples per worker".
std::string batch_words(const CompareOptions& options);

// Returns the number of workers of the variant with the most workers.
int most_workers(const CompareOptions& options);

// Returns the number of lanes of every worker: 1 unless the flags for all runs set another number.
int threads_per_worker(const CompareOptions& options);

// Returns the momentum of an optimizer; 0 if it has none.
double momentum_of(const OptimizerOptions& optimizer);

// Returns whether the variant trains in rounds with an outer step other than the plain average,
// which changes the training of one worker, too. Throws UsageError for options of local updates
// that contradict each other.
bool has_outer_optimizer(const CompareOptions& options, const Variant& variant);

// Returns the control of a variant with several workers and an outer optimizer: one worker with the
// batch of all workers, the same outer step and as many steps in a round. Only a difference from
// the control is due to the distribution. Returns nullopt for other variants. Throws what
// has_outer_optimizer() throws.
std::optional<Variant> control_of(const CompareOptions& options, const Variant& variant);

// Sets what the word of the variant says of its strategy.
void set_strategy(const Variant& variant, StrategyOptions& strategy);

// Returns one run of a variant. train_samples: as for plan_runs().
RunSpec plan_run(const CompareOptions& options, const Variant& variant, std::uint64_t seed,
                 std::int64_t train_samples);

// Returns the run without injected faults, for a user who trains its variant once. The seed, the
// threads, the evaluations and the output are those that the user gave, or the defaults.
RunSpec undisturbed(const CompareOptions& options, RunSpec run);

// Returns all runs: first all variants with the first seed, then with the next seed, and so on. A
// comparison that was stopped therefore has about the same number of runs of each variant.
// train_samples: the size of the training split. Throws UsageError for two variants with the same
// label, and for delays of pipeline steps on the real clock.
std::vector<RunSpec> plan_runs(const CompareOptions& options, std::int64_t train_samples);

}  // namespace syncopate::bench
