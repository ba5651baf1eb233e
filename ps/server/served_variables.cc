#include "ps/server/served_variables.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/optim/optimizer.h"
#include "models/optim/outer_rule.h"
#include "ps/coordinator/declaration.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/shard/stale_gradients.h"

namespace syncopate::ps {
namespace {

// More elements than any current network has, and so few that sums of sizes do not overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr std::size_t kNumConstants = 6;

ArenaLayout layout_of(const wire::DeclarationT& declaration) {
  std::vector<ArenaEntry> entries;
  std::int64_t total = 0;
  for (const auto& variable : declaration.variables) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : variable->shape) {
      if (extent < 1 || extent > kMostElements / elements) {
        throw UsageError(
            fmt::format("declaration: variable {} has an invalid shape", variable->name));
      }
      elements *= extent;
    }
    total += elements;
    if (total > kMostElements) throw UsageError("declaration: more variables than memory can hold");
    entries.push_back({variable->name, variable->shape, variable->decays});
  }
  return ArenaLayout(std::move(entries));
}

std::unique_ptr<Optimizer> optimizer_of_shard(const wire::DeclarationT& declaration,
                                              const ConsistencyOptions& consistency) {
  if (declaration.outer == nullptr) {
    return make_shard_optimizer(optimizer_options(declaration), consistency, declaration.workers);
  }
  // Each push has the learning rate.
  return make_outer_rule({.momentum = declaration.outer->momentum,
                          .nesterov = declaration.outer->nesterov,
                          .momentum_every = declaration.outer->momentum_every});
}

}  // namespace

ConsistencyOptions consistency_options(const wire::DeclarationT& declaration) {
  if (declaration.consistency > static_cast<std::uint8_t>(Consistency::kQuorum) ||
      declaration.staleness_rule > static_cast<std::uint8_t>(StalenessRule::kOrderedMomentum)) {
    throw UsageError(
        "declaration: unknown consistency or staleness rule; start all tasks with the same program "
        "version");
  }
  const auto rule = static_cast<StalenessRule>(declaration.staleness_rule);
  return {.consistency = consistency_of(declaration),
          .max_staleness = declaration.max_staleness,
          .backup_workers = declaration.backup_workers,
          .quorum = declaration.quorum,
          .grace = declaration.grace,
          .staleness_rule = rule,
          .rule_number = declaration.staleness_number,
          .compensation = compensation_of(rule)};
}

OptimizerOptions optimizer_options(const wire::DeclarationT& declaration) {
  const std::size_t found = declaration.optimizer_constants.size();
  if (found != kNumConstants && found != kNumConstants - 1) {  // the last one may be left out
    throw UsageError(
        fmt::format("declaration: {} optimizer constants, expected {}", found, kNumConstants));
  }
  const std::vector<double>& constants = declaration.optimizer_constants;
  return {.name = declaration.optimizer,
          .momentum = constants[0],
          .nesterov = declaration.nesterov,
          .beta1 = constants[1],
          .beta2 = constants[2],
          .epsilon = constants[3],
          .weight_decay = constants[4],
          .average_decay = average_decay_of(declaration)};
}

std::shared_ptr<ServedVariables> make_served_variables(wire::DeclarationT declaration, int index) {
  auto served = std::make_shared<ServedVariables>();
  ArenaLayout layout = layout_of(declaration);
  std::vector<Bucket> buckets;
  std::int64_t elements = 0;
  for (std::size_t b = 0; b < declaration.buckets.size(); ++b) {
    const wire::BucketPlace& place = declaration.buckets[b];
    const bool is_ours = place.owner() == index;
    served->shard_bucket.push_back(is_ours ? static_cast<int>(buckets.size()) : -1);
    if (!is_ours) continue;
    if (place.begin() < 0 || place.end() <= place.begin() || place.end() > layout.total()) {
      throw UsageError(fmt::format("declaration: bucket {} lies outside the variables", b));
    }
    served->job_bucket.push_back(static_cast<int>(b));
    buckets.push_back({place.begin(), place.end()});
    elements += place.end() - place.begin();
  }
  served->fingerprint = fingerprint_of(declaration);
  const ConsistencyOptions consistency = consistency_options(declaration);
  served->shard = std::make_shared<Shard>(
      std::move(layout), std::move(buckets), optimizer_of_shard(declaration, consistency),
      consistency, make_host_tensor({elements}, DType::kF32), values_format(declaration));
  served->declaration = std::move(declaration);
  return served;
}

}  // namespace syncopate::ps
