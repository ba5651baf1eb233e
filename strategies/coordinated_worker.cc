#include "strategies/coordinated_worker.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/collective/work_progress.h"
#include "strategies/local_updates/displacement_variables.h"
#include "strategies/snapshot.h"

namespace syncopate {
namespace {

class WorkerVariables final : public VariableStore {
 public:
  WorkerVariables(Replica& replica, ShardTransport& transport, const StrategyOptions& options)
      : replica_(replica),
        transport_(transport),
        lanes_(options.lanes),
        clip_norm_(options.clip_norm) {}

  // Requests nothing: the push of the step before has already asked for the new values.
  void pull(const UpdateStep& update) override { update_ = update; }

  void wait_values(BucketId bucket) override {
    {
      const Stopwatch::Exposed exposed(watch_);
      const Span span(replica_.trace, TraceKind::kCommunication);
      transport_.wait_values(bucket);
    }
    replica_.arena->bump_version(bucket);
  }

  void push(BucketId bucket, const StepReport& report) override {
    if (bucket == 0) begin_step(report);
    watch_.begin();
    const Stopwatch::Exposed exposed(watch_);
    const Span span(replica_.trace, TraceKind::kCommunication);
    if (clip_norm_ <= 0.0) return transport_.push(bucket);
    const auto buckets = static_cast<BucketId>(replica_.arena->buckets().size());
    if (bucket + 1 < buckets) return;
    replica_.backend->clip_gradients(*replica_.arena, clip_norm_);
    for (BucketId b = 0; b < buckets; ++b) transport_.push(b);
  }

  StepReport commit() override {
    const Stopwatch::Exposed exposed(watch_);
    const Span span(replica_.trace, TraceKind::kCommunication);
    return transport_.finish_step().value_or(report_);
  }

  CommunicationTimes times() const override { return transport_.with_traffic(watch_.times()); }

 private:
  void begin_step(const StepReport& report) {
    report_ = report;
    transport_.begin_step(step_info_of(replica_, report, update_.learning_rate, lanes_));
    watch_.end();  // all answers to the last step's pushes have arrived
  }

  Replica& replica_;
  ShardTransport& transport_;
  const int lanes_;
  const double clip_norm_;
  UpdateStep update_;
  StepReport report_;
  Stopwatch watch_;
};

}  // namespace

ps::StepInfo step_info_of(const Replica& replica, const StepReport& report, float learning_rate,
                          int lanes) {
  return {.learning_rate = learning_rate,
          .batches = {},
          .inner_rates = {},
          .bad_of_batches = {},
          .lanes = lanes,
          .loss = report.scores.loss,
          .metric = report.scores.metrics[kMainMetric],
          .samples = report.scores.num_samples,
          .num_bad = report.scores.num_bad,
          .stops = report.stops,
          .state = replica.state->values.f32()};
}

std::unique_ptr<VariableStore> make_worker_variables(Replica& replica, ShardTransport& transport,
                                                     const StrategyOptions& options) {
  if (pushes_displacements(options.local)) {
    return std::make_unique<DisplacementVariables>(replica, transport, options);
  }
  return std::make_unique<WorkerVariables>(replica, transport, options);
}

std::unique_ptr<Optimizer> make_optimizer_of_shards(const StrategyOptions& options) {
  if (pushes_displacements(options.local)) return make_outer_rule(shard_outer_options(options));
  return ps::make_shard_optimizer(options.optimizer, options.consistency, 1);
}

void ServedWorker::begin_step(ps::StepInfo step) {
  step.state = {};  // running statistics are averaged by agree(), not on the servers
  client_.begin_step(step);
}

std::optional<StepReport> ServedWorker::finish_step() {
  const ps::wire::StepSumsT sums = client_.finish_step();
  return StepReport{.scores = {.loss = sums.loss,
                               .num_samples = sums.samples,
                               .num_bad = sums.num_bad,
                               .metrics = {sums.metric}},
                    .stops = ps::stop_counts_from_wire(sums.stops)};
}

CommunicationTimes ServedWorker::with_traffic(CommunicationTimes times) const {
  const ps::Client::Traffic traffic = client_.traffic();
  times.bytes_sent = traffic.bytes_pushed;
  times.bytes_received = traffic.bytes_pulled;
  // Servers may hold back answers while the worker computes; that time costs the worker nothing.
  times.peers_wait_seconds = std::min(traffic.peers_wait_seconds, times.exposed_seconds);
  return times;
}

void LeasedWorker::begin_step(ps::StepInfo step) {
  step.batches = std::exchange(batches_, {});
  client().begin_step(step);
}

std::optional<StepReport> LeasedWorker::finish_step() {
  client().finish_step();
  return std::nullopt;
}

CommunicationTimes LeasedWorker::with_traffic(CommunicationTimes times) const {
  times = ServedWorker::with_traffic(times);
  if (ps::drops_gradients(options_.consistency)) times.dropped_steps = client().traffic().dropped;
  return times;
}

JobStatus LeasedWorker::status() const { return job_status_of(client().status()); }

std::optional<Assignment> LeasedWorker::next_assignment() {
  const auto next = client().assignment();
  return next ? std::optional(assignment_of(*next)) : std::nullopt;
}

std::optional<Assignment> LeasedWorker::wait_assignment() {
  client().flush();  // servers write to this worker's memory until it returns
  const auto next = client().wait_assignment();
  return next ? std::optional(assignment_of(*next)) : std::nullopt;
}

Snapshot LeasedWorker::read_snapshot(const Assignment& assignment, bool with_slots) {
  Snapshot copy;
  copy.values = make_host_tensor(replica_.arena->values().shape(), DType::kF32);
  if (with_slots) {
    copy.slots =
        OptimizerSlots(make_optimizer_of_shards(options_), copy.values.num_elements()).named();
  }
  client().read_snapshot(assignment.snapshot_id, copy.values.f32(), memory_of(copy.slots));
  remove_collected(copy.slots);
  copy.state = make_host_tensor(replica_.state->values.shape(), DType::kF32);
  const std::vector<float> state = client().read_snapshot_state(assignment.snapshot_id);
  check(state.size() == copy.state.f32().size(),
        "servers hold as many running statistics as the network has");
  std::ranges::copy(state, copy.state.f32().begin());
  return copy;
}

void LeasedWorker::refresh() {
  client().flush();  // waits for answers that are on their way
  client().pull();
}

ps::wire::DeclarationT declare_job(const StrategyOptions& options, const Graph& graph,
                                   std::span<const Bucket> buckets, std::span<const int> owners,
                                   int workers) {
  ps::wire::DeclarationT declaration;
  const ArenaLayout layout = graph.parameter_layout();
  for (const ArenaEntry& entry : layout.entries()) {
    auto variable = std::make_unique<ps::wire::VariableT>();
    variable->name = entry.name;
    variable->shape = entry.shape;
    variable->decays = entry.decays;
    declaration.variables.push_back(std::move(variable));
  }
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    declaration.buckets.emplace_back(buckets[b].begin, buckets[b].end,
                                     owners.empty() ? 0 : owners[b]);
  }
  declaration.state_elements = graph.state_layout().total();
  const OptimizerOptions& optimizer = options.optimizer;
  declaration.optimizer = optimizer.name;
  declaration.optimizer_constants = {optimizer.momentum,     optimizer.beta1,
                                     optimizer.beta2,        optimizer.epsilon,
                                     optimizer.weight_decay, optimizer.average_decay};
  declaration.nesterov = optimizer.nesterov;
  const ps::ConsistencyOptions& consistency = options.consistency;
  declaration.consistency = static_cast<std::uint8_t>(consistency.consistency);
  declaration.max_staleness = consistency.max_staleness;
  declaration.backup_workers = consistency.backup_workers;
  declaration.quorum = consistency.quorum;
  declaration.grace = consistency.grace;
  declaration.staleness_rule = static_cast<std::uint8_t>(consistency.staleness_rule);
  declaration.staleness_number = consistency.rule_number;
  if (pushes_displacements(options.local)) {
    const OuterRuleOptions outer = shard_outer_options(options);
    declaration.outer = std::make_unique<ps::wire::OuterStepT>();
    declaration.outer->momentum = outer.momentum;
    declaration.outer->nesterov = outer.nesterov;
    declaration.outer->momentum_every = outer.momentum_every;
  }
  declaration.bf16_values =
      ps::values_format(options.parameter_server.compression) == ps::ValuesFormat::kBf16;
  declaration.workers = workers;
  for (const Agreement& agreement : options.parameter_server.agreements) {
    auto one = std::make_unique<ps::wire::AgreementT>();
    one->name = agreement.name;
    one->value = agreement.value;
    one->must = agreement.must;
    declaration.agreements.push_back(std::move(one));
  }
  const JobPlan& plan = options.parameter_server.plan;
  declaration.dataset_size = plan.dataset_size;
  declaration.batch_size = plan.batch_size;
  declaration.total_epochs = plan.total_steps ? 0 : plan.total_epochs;
  declaration.total_steps = plan.total_steps.value_or(0);
  declaration.eval_every_epochs = plan.eval_every_epochs;
  declaration.eval_every_steps = plan.eval_every_steps;
  declaration.checkpoint_every_steps = plan.checkpoint_every_steps;
  declaration.writes_checkpoints = plan.writes_checkpoints;
  declaration.saves_evaluated = plan.saves_evaluated;
  return declaration;
}

void remove_collected(std::vector<Snapshot::Slot>& slots) {
  std::erase_if(slots, [](const Snapshot::Slot& slot) { return slot.name == ps::kCollectedSlot; });
}

JobStatus job_status_of(const ps::wire::JobStatusT& status) {
  return {.step = status.step,
          .samples = status.samples,
          .loss = status.loss,
          .metric = status.metric,
          .live_workers = status.live_workers,
          .staleness_mean = status.staleness_mean,
          .staleness_max = status.staleness_max,
          .stopped_by = ps::stop_kind_from_wire(status.stopped_by),
          .learning_rate_factor = status.learning_rate_factor,
          .num_bad_in_epoch = status.num_bad_in_epoch};
}

Assignment assignment_of(const ps::wire::AssignmentT& wire) {
  Assignment assignment{.snapshot_id = wire.snapshot,
                        .evaluates = wire.evaluates,
                        .writes_checkpoint = wire.writes_checkpoint,
                        .is_final = wire.is_final,
                        .stopped_by = ps::stop_kind_from_wire(wire.stopped_by),
                        .status = {},
                        .position = ps::position_of(wire).position,
                        .rules = wire.rules,
                        .pushes = wire.pushes,
                        .staleness = {},
                        .repeated_batches = wire.repeated_batches};
  ps::StalenessHistogram all;
  for (const auto& one : wire.staleness) {
    assignment.staleness.push_back({one->worker, ps::from_wire(*one)});
    all.merge(assignment.staleness.back().histogram);
  }
  assignment.status = {.step = wire.step,
                       .samples = wire.samples,
                       .loss = wire.loss,
                       .metric = wire.metric,
                       .live_workers = 0,
                       .staleness_mean = all.mean(),
                       .staleness_max = all.max(),
                       .stopped_by = assignment.stopped_by,
                       .num_bad_in_epoch = wire.num_bad_in_epoch};
  return assignment;
}

}  // namespace syncopate
