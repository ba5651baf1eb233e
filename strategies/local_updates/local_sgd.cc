// --strategy local-sgd: every replica trains --sync-every steps with an optimizer of its own, and
// then all replicas exchange displacements. Between the ends of two rounds, no task waits for
// another. Checkpoints, evaluations and the exported network have the outer values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/local_updates/local_variables.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

class LocalSgd final : public SynchronousStrategy {
 public:
  LocalSgd(const StrategyOptions& options, const Graph& graph)
      : SynchronousStrategy(options, graph, join_replicas(options, graph), nullptr) {
    if (outer_rule_row(options.local.outer).begins_with_sums) {
      require_summable_reports(options, replicas_in_sync());
    }
    std::vector<std::unique_ptr<Collective>> groups(replicas().size());
    if (options.local.sync_groups > 1) {
      // Values lie outside of the blocks, which are therefore small.
      groups = make_local_collectives({.num_local_ranks = options.replicas, .block_elements = 1});
      for (const auto& group : groups) groups_.push_back(group.get());
    }
    for (Replica& replica : replicas()) {
      auto variables = std::make_unique<LocalVariables>(
          replica, options, aborted_, std::move(groups[static_cast<std::size_t>(replica.index)]),
          [this](Replica& own) { average_statistics(own); });
      variables_.push_back(variables.get());
      replica.variables = std::move(variables);
    }
  }

  bool is_local(const UpdateStep& step) const override {
    return !sums_gradients(options().local, step.epochs);
  }
  std::int64_t steps_left_in_round() const override { return variables_.front()->steps_left(); }
  std::span<const std::int64_t> steps_of_round() const override {
    return variables_.front()->steps_of_round();
  }
  Snapshot snapshot() override {
    Snapshot now = SynchronousStrategy::snapshot();
    now.outer_rate = variables_.front()->outer_rate();
    return now;
  }
  Snapshot snapshot_to_save() override;
  std::vector<std::string> slots_to_save() override;
  void restore(const Snapshot& saved) override;
  void abort(std::string_view reason) noexcept override {
    aborted_.set(reason);
    for (Collective* const group : groups_) group->abort(reason);
    SynchronousStrategy::abort(reason);
  }

 private:
  // Returns how many sets of inner slots a checkpoint has: one for each worker, one if all workers
  // have equal slots, or none if the slots are always zeros when a checkpoint is written.
  int inner_sets() const {
    if (variables_.front()->sums_gradients()) return 1;
    const InnerState state = options().local.inner_state;
    if (state == InnerState::kKeep) return replicas_in_sync();
    return state == InnerState::kAverage || options().local.local_from ? 1 : 0;
  }
  // Returns the names of the inner slots of all workers, worker by worker.
  std::vector<std::string> inner_names() const;
  // Broadcasts the inner slots of all workers, one after the other. Worker r's slots are sent by
  // worker r (to_chief), or by the chief. `all` has the chief's blocks, worker by worker.
  void move_inner_slots(bool to_chief, const std::vector<Tensor>& all);
  std::vector<Snapshot::Slot> slots_of(const Replica& replica) const override {
    return variables_[static_cast<std::size_t>(replica.index)]->slots();
  }

  AbortReason aborted_;
  std::vector<LocalVariables*> variables_;  // of each replica, which owns them
  std::vector<Collective*> groups_;         // of each replica, owned by its variables
};

std::vector<std::string> LocalSgd::inner_names() const {
  std::vector<std::string> names;
  const auto sets = static_cast<std::size_t>(inner_sets());
  for (std::size_t worker = 0; worker < sets; ++worker) {
    for (const Snapshot::Slot& slot : variables_.front()->inner_slots()) {
      names.push_back(sets == 1 ? slot.name : worker_slot(slot.name, worker));
    }
  }
  return names;
}

std::vector<std::string> LocalSgd::slots_to_save() {
  std::vector<std::string> names = inner_names();
  for (const Snapshot::Slot& slot : variables_.front()->slots()) names.push_back(slot.name);
  return names;
}

void LocalSgd::move_inner_slots(bool to_chief, const std::vector<Tensor>& all) {
  for_each_replica([&](Replica& replica) {
    Collective& collective = *replica.collective;
    const std::vector<Snapshot::Slot> own =
        variables_[static_cast<std::size_t>(replica.index)]->inner_slots();
    const bool has_all = is_chief() && replica.index == 0;
    Tensor unread;
    std::size_t next = 0;
    for (int worker = 0; worker < inner_sets(); ++worker) {
      for (const Snapshot::Slot& slot : own) {
        const bool is_own = worker == collective.rank() || inner_sets() == 1;
        const std::span<float> mine = slot.values.f32();
        const std::span<float> kept = has_all ? all[next++].f32() : std::span<float>();
        if (has_all && is_own) {
          std::ranges::copy(to_chief ? mine : kept, to_chief ? kept.begin() : mine.begin());
        }
        if (!has_all && !is_own && unread.num_elements() == 0) {
          unread = make_host_tensor(slot.values.shape(), DType::kF32);
        }
        const std::span<float> block = has_all ? kept : is_own ? mine : unread.f32();
        collective.broadcast(std::as_writable_bytes(block), to_chief ? worker : 0);
      }
    }
  });
}

Snapshot LocalSgd::snapshot_to_save() {
  Snapshot saved = snapshot();
  std::vector<Snapshot::Slot> outer = std::exchange(saved.slots, {});
  std::vector<Tensor> inner;
  for (const std::string& name : inner_names()) {
    if (!is_chief()) break;
    inner.push_back(make_host_tensor(saved.values.shape(), DType::kF32));
    saved.slots.push_back({name, inner.back()});
  }
  move_inner_slots(true, inner);
  std::ranges::move(outer, std::back_inserter(saved.slots));
  return saved;
}

void LocalSgd::restore(const Snapshot& saved) {
  Snapshot outer = saved;
  std::vector<Tensor> inner;
  const std::vector<std::string> names = inner_names();
  std::erase_if(outer.slots, [&](const Snapshot::Slot& slot) {
    if (std::ranges::find(names, slot.name) == names.end()) return false;
    inner.push_back(slot.values);
    return true;
  });
  if (!inner.empty() && inner.size() != names.size()) {
    throw ShapeError(
        fmt::format("restore: {} slots of workers, expected {}", inner.size(), names.size()));
  }
  SynchronousStrategy::restore(outer);
  // A file of weights has no slots, and only the chief knows what it has read.
  std::array<double, 2> sent{inner.empty() ? 0.0 : 1.0,
                             static_cast<double>(saved.outer_rate.value_or(0.0F))};
  broadcast(std::as_writable_bytes(std::span(sent)));
  if (sent[0] != 0.0) move_inner_slots(false, inner);
  for (LocalVariables* const variables : variables_) {
    variables->set_outer_rate(static_cast<float>(sent[1]));
  }
}

}  // namespace

OuterRuleOptions outer_options(const LocalUpdateOptions& options) {
  OuterRuleOptions outer = outer_rule_defaults(options.outer);
  if (options.outer_learning_rate) outer.learning_rate = *options.outer_learning_rate;
  if (options.outer_momentum) outer.momentum = *options.outer_momentum;
  outer.nesterov = outer.nesterov || options.outer_nesterov;
  outer.scale_by_rate = outer.scale_by_rate || options.outer_scale_by_rate;
  return outer;
}

OuterRuleOptions shard_outer_options(const StrategyOptions& options) {
  OuterRuleOptions outer = outer_options(options.local);
  // The displacements of K workers add up to K times their mean.
  const bool divides = outer_rule_row(options.local.outer).has_number;  // by its own number
  const bool makes_mean = options.consistency.consistency == ps::Consistency::kQuorum;
  const int workers = options.parameter_server.cluster.world_size * options.replicas;
  if (!options.local.outer_learning_rate && !divides && !makes_mean) outer.learning_rate /= workers;
  return outer;
}

bool sums_gradients(const LocalUpdateOptions& options, double epochs) {
  constexpr double kRounding = 1e-9;  // of the number of epochs
  return options.local_from && epochs + kRounding < *options.local_from;
}

void check_local_updates(const StrategyOptions& options) {
  const bool pushes = pushes_displacements(options.local);
  const std::string strategy = pushes ? "--push displacement" : "--strategy " + options.name;
  if (options.local.sync_every < 1) {
    throw UsageError(fmt::format(
        "{} requires --sync-every N: each worker trains N steps between two exchanges; a larger N "
        "sends less, and the workers' models drift further apart; try --sync-every 8",
        strategy));
  }
  const LocalUpdateOptions& local = options.local;
  if (local.sync_groups > 1 && options.replicas < 2) {
    throw UsageError(fmt::format(
        "--sync-groups {}: a task has one replica, so it has no group; give --replicas N, or leave "
        "the flag out",
        local.sync_groups));
  }
  if (local.sync_groups < 1 || local.sync_every % local.sync_groups != 0) {
    throw UsageError(fmt::format(
        "--sync-groups {}: expected a divisor of --sync-every {}, because a round has as many "
        "parts of equal length",
        local.sync_groups, local.sync_every));
  }
  const bool begins_with_sums = outer_rule_row(options.local.outer).begins_with_sums;
  const OuterRuleOptions outer = outer_options(options.local);
  (void)make_outer_rule(outer);
  if (!pushes && outer_rule_row(local.outer).has_number) {
    throw UsageError(fmt::format(
        "--outer {} requires --push displacement: it is for displacements that arrive one by one; "
        "choose --outer diloco",
        local.outer));
  }
  if (pushes && (begins_with_sums || outer.scale_by_rate)) {
    throw UsageError(fmt::format(
        "--outer {}: under --push displacement the servers make each outer step from one worker's "
        "displacement; choose --outer average",
        local.outer));
  }
  if (begins_with_sums && !options.local.local_from) {
    throw UsageError(fmt::format(
        "--outer {} requires --local-from EPOCH: until then, the workers sum gradients in every "
        "step; try the epoch of the first decay of the learning rate",
        options.local.outer));
  }
  const bool wants_momentum = options.local.outer_nesterov || options.local.outer_scale_by_rate;
  if (wants_momentum && outer.momentum == 0.0) {
    throw UsageError(fmt::format(
        "{} requires an outer momentum above 0; give --outer-momentum 0.9, or leave the flag out",
        options.local.outer_nesterov ? "--outer-nesterov" : "--outer-scale-by-rate"));
  }
  if (pushes && local.inner_state == InnerState::kAverage) {
    throw UsageError(
        "--inner-state average: under --push displacement no two workers exchange their state; "
        "choose keep or reset");
  }
  if (pushes && options.consistency.staleness_rule != ps::StalenessRule::kNone) {
    throw UsageError(fmt::format(
        "--staleness-rule {}: the rule is not for displacements; leave it out, or give --push "
        "gradient",
        ps::staleness_rule_text(options.consistency)));
  }
  if (pushes && options.consistency.consistency == ps::Consistency::kSync) {
    throw UsageError("--push displacement requires --consistency async, ssp or quorum");
  }
  const bool makes_mean = options.consistency.consistency == ps::Consistency::kQuorum;
  if (makes_mean && outer_rule_row(local.outer).has_number) {
    throw UsageError(fmt::format(
        "--outer {} is for displacements that arrive one by one; under --consistency quorum choose "
        "--outer diloco",
        local.outer));
  }
  if (options.optimizer.average_decay > 0.0) {
    throw UsageError(
        fmt::format("--ema {}: under {} each worker would average its own values; leave it out",
                    options.optimizer.average_decay, strategy));
  }
  if (options.batch_norm == BatchNormStatistics::kSync) {
    throw UsageError(fmt::format(
        "--batch-norm sync: under {} workers exchange nothing in a step; leave it out", strategy));
  }
  for (const Device& device : options.devices) {
    if (device.kind == DeviceKind::kCpu) continue;
    throw UsageError(fmt::format(
        "--devices {}: {} trains on CPUs only; leave it out, or choose another strategy",
        to_string(device), strategy));
  }
}

std::unique_ptr<Strategy> make_local_sgd(const StrategyOptions& options, const Graph& graph) {
  check_local_updates(options);
  return std::make_unique<LocalSgd>(options, graph);
}

}  // namespace syncopate
