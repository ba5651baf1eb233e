// Makes the declaration and the start position of a random job: the job's options, and the step and
// the place in the data from which it starts.
#include <algorithm>

#include "ps/coordinator/wire_conversion.h"
#include "tests/ps/coordinator/schedule_job.h"

namespace syncopate::ps {

wire::DeclarationT ScheduledJob::random_declaration() {
  wire::DeclarationT declaration;
  declaration.workers = size_.workers > 0 ? size_.workers : 1 + chance_.below(4);
  declaration.consistency = static_cast<std::uint8_t>(chance_.below(3));
  const auto consistency = consistency_of(declaration);
  if (consistency == Consistency::kSsp) declaration.max_staleness = chance_.below(3);
  if (consistency == Consistency::kSync && declaration.workers > 1) {
    declaration.backup_workers = chance_.below(2);
  }
  if (consistency == Consistency::kAsync && rule_chance_.one_in(2)) {
    // A collection has 2 or 4 gradients, so that its parts of a loss are exact.
    const bool collects = rule_chance_.one_in(2);
    declaration.staleness_rule =
        static_cast<std::uint8_t>(collects ? StalenessRule::kRennala : StalenessRule::kRingmaster);
    declaration.staleness_number =
        collects ? 2 + 2 * rule_chance_.below(2) : 1 + rule_chance_.below(3);
  }
  if (consistency != Consistency::kSync && declaration.staleness_rule == 0 &&
      rule_chance_.one_in(2)) {
    declaration.outer = std::make_unique<wire::OuterStepT>();
    if (size_.servers <= 1 && rule_chance_.one_in(2)) {
      declaration.consistency = static_cast<std::uint8_t>(Consistency::kQuorum);
      declaration.max_staleness = 0;
      declaration.quorum = rule_chance_.below(declaration.workers + 1);
    }
  }
  declaration.dataset_size = 7 + chance_.below(4);
  declaration.batch_size = 2;
  const bool is_synchronous = consistency == Consistency::kSync && declaration.backup_workers == 0;
  if (is_synchronous || chance_.one_in(2)) {
    declaration.total_steps = 3 + chance_.below(12);
  } else {
    declaration.total_epochs = 1 + chance_.below(3);
    // At least one collection of 4 batches, also behind the start position.
    if (declaration.staleness_number > 1) declaration.total_epochs = 3;
  }
  if (is_large_) {
    // About two batches for each worker, or two to five steps of all.
    declaration.total_epochs = 0;
    declaration.total_steps = is_synchronous || declaration.backup_workers > 0
                                  ? 5
                                  : std::int64_t{2} * declaration.workers;
    declaration.dataset_size = std::int64_t{2} * declaration.workers + chance_.below(4);
  }
  declaration.eval_every_epochs = chance_.below(3);
  declaration.checkpoint_every_steps = chance_.below(4);
  declaration.writes_checkpoints = chance_.one_in(2);
  return declaration;
}

wire::InitialisedT ScheduledJob::random_start() {
  wire::InitialisedT start;
  if (chance_.one_in(2)) return start;
  start.step = chance_.below(4);
  start.samples = 2 * start.step;
  start.offset = 2 + 2 * chance_.below(2);
  if (!is_synchronous() && chance_.one_in(2))
    start.untrained.emplace_back(0, 0, 1 + chance_.below(2));
  return start;
}

std::vector<SampleRange> ScheduledJob::expected_batches() const {
  std::vector<SampleRange> batches;
  for (const wire::SampleRange& range : start_.untrained) {
    batches.push_back({range.epoch(), range.begin(), range.end()});
  }
  const auto steps = static_cast<std::size_t>(
      std::max<std::int64_t>(declaration_.total_steps - start_.step, 0) * batches_per_step());
  const bool counts_epochs = declaration_.total_epochs > 0;
  SampleRange next{start_.epoch, start_.offset, start_.offset + 2};
  for (;; next.begin += 2, next.end += 2) {
    if (next.end > declaration_.dataset_size) next = {next.epoch + 1, 0, 2};
    if (counts_epochs ? next.epoch >= declaration_.total_epochs : batches.size() >= steps) break;
    batches.push_back(next);
  }
  if (!counts_epochs) batches.resize(std::min(batches.size(), steps));
  if (collects()) {
    batches.resize(batches.size() - batches.size() % static_cast<std::size_t>(batches_per_step()));
  }
  return batches;
}

}  // namespace syncopate::ps
