#include "bench/virtual_clock/virtual_asynchronous_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/optim/outer_rule.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {
namespace {

using Doing = VirtualWorker::Doing;

Tensor copy_of(const Tensor& values) {
  const Tensor copy = make_host_tensor(values.shape(), DType::kF32);
  std::ranges::copy(values.f32(), copy.f32().begin());
  return copy;
}

std::unique_ptr<Optimizer> make_optimizer_of(const VirtualPlan& plan) {
  const StrategyOptions& strategy = plan.strategy;
  if (pushes_displacements(strategy.local)) return make_outer_rule(shard_outer_options(strategy));
  return ps::make_shard_optimizer(strategy.optimizer, strategy.consistency, plan.workers);
}

std::int64_t batches_per_step(const VirtualPlan& plan) {
  const ps::ConsistencyOptions& consistency = plan.strategy.consistency;
  return consistency.consistency == ps::Consistency::kSync
             ? plan.workers - consistency.backup_workers
             : ps::gradients_per_update(consistency);
}

ps::LedgerOptions ledger_options(const VirtualPlan& plan) {
  ps::LedgerOptions options{.dataset_size = plan.dataset_size, .batch_size = plan.batch()};
  options.total_batches = plan.loop.total_steps ? *plan.loop.total_steps * batches_per_step(plan)
                                                : ps::batches_left(options, plan.loop.total_epochs);
  // The gradients of a last, incomplete collection would never reach the values.
  const std::int64_t all = options.total_batches;
  options.total_batches -= all % ps::gradients_per_update(plan.strategy.consistency);
  if (options.total_batches == 0 && all > 0) {
    throw UsageError(fmt::format(
        "--staleness-rule {}: the whole run has {} batches, so no update would be made; give at "
        "most rennala:{}, or train longer",
        ps::staleness_rule_text(plan.strategy.consistency), all, all));
  }
  return options;
}

}  // namespace

VirtualAsynchronousJob::VirtualAsynchronousJob(const VirtualRun& run, const VirtualPlan& plan,
                                               VirtualDevice& device, MetricsWriter& metrics,
                                               const std::function<void(double)>& progress)
    : plan_(plan),
      batches_per_step_(batches_per_step(plan)),
      buckets_(plan.buckets),
      server_bytes_per_second_(run.faults.server_bytes_per_second),
      device_(device),
      shard_(run.graph.parameter_layout(), plan.placement.buckets, make_optimizer_of(plan),
             plan.strategy.consistency, copy_of(device.values()), plan.values_format()),
      ledger_(ledger_options(plan)),
      reader_(*run.data.train, plan.input, {}),
      slot_(reader_.make_slot()),
      statistics_({device.state().begin(), device.state().end()}),
      network_(run.faults.link, plan.places, plan.buckets.servers()),
      server_free_(static_cast<std::size_t>(plan.buckets.servers())),
      updated_(plan.buckets.bytes.size()),
      delays_(run.faults, plan.strategy.seed),
      lines_(plan, ledger_.options().total_batches / batches_per_step_, metrics, progress),
      workers_(static_cast<std::size_t>(plan.places)),
      accounts_(workers_.size()) {
  for (BucketId b = 0; b < buckets_.count(); ++b) {
    if (buckets_.owner_of(b) == 0) last_of_server_0_ = b;
  }
  schedule(run.faults);
}

VirtualOutcome VirtualAsynchronousJob::run() {
  while (!queue_.empty()) {
    on_event(queue_.take());
    process_due_work();
    plan_deadline();
  }
  if (!is_over()) throw PeerError(describe_standstill());
  finish_accounts();
  lines_.step(moment(), accounts_, true);
  device_.load(shard_.values().f32());
  require_finite(tensors_of(shard_), lines_.sums().step, learning_rate_);
  const Evaluation watched = evaluate();
  const Dataset* const test = plan_.final_test;
  lines_.workers(accounts_);
  return {.sums = lines_.sums(),
          .end = end_,
          .train_loss = lines_.train_loss(),
          .test = test != nullptr ? device_.evaluate_on(*test, statistics_.average({})) : watched,
          .validation = test != nullptr ? std::optional(watched) : std::nullopt,
          .weights_hash = weights_hash(shard_.values()),
          .accounts = accounts_,
          .staleness = staleness()};
}

void VirtualAsynchronousJob::schedule(const FaultInjection& faults) {
  std::vector<bool> comes_later(workers_.size());
  for (const Join& join : faults.joins) {
    comes_later[static_cast<std::size_t>(join.worker)] = true;
    queue_.add(virtual_time(join.at_seconds), join.worker,
               {.kind = JobEvent::Kind::kJoin, .worker = join.worker});
  }
  for (int w = 0; w < plan_.workers; ++w) {
    if (comes_later[static_cast<std::size_t>(w)]) continue;
    queue_.add(VirtualTime(0), w, {.kind = JobEvent::Kind::kJoin, .worker = w});
  }
  for (const Kill& kill : faults.kills) {
    queue_.add(virtual_time(kill.at_seconds), kill.worker,
               {.kind = JobEvent::Kind::kKill,
                .worker = kill.worker,
                .restart_seconds = kill.restart_seconds});
  }
}

void VirtualAsynchronousJob::on_event(const JobEvent& event) {
  using Kind = JobEvent::Kind;
  const int w = event.worker;
  // Faults after the end of training have no effect.
  if (event.kind == Kind::kKill || event.kind == Kind::kJoin) {
    if (is_over()) return;
    return event.kind == Kind::kKill ? kill(w, event.restart_seconds) : join(w);
  }
  if (event.kind == Kind::kDeadline) return shard_.advance_to(now());
  const VirtualWorker& of = worker(w);
  if (!of.is_alive || of.incarnation != event.incarnation) return;
  if (event.kind == Kind::kCompleted) return push(w, event.bucket);
  if (event.kind == Kind::kStepped) return end_step_of_round(w);
  if (event.kind == Kind::kPushed) return pushed(w, event.bucket);
  if (event.kind == Kind::kServed) return served(w, event.bucket);
  if (event.kind == Kind::kReleased) return send_values(w, event.bucket);
  answered(w, event.bucket);
}

void VirtualAsynchronousJob::plan_deadline() {
  const auto deadline = shard_.next_deadline();
  if (!deadline || deadline == planned_deadline_) return;
  planned_deadline_ = deadline;
  // Pushes that arrive at the same time come first: they belong to the update.
  queue_.add(*deadline, plan_.places, {.kind = JobEvent::Kind::kDeadline});
}

void VirtualAsynchronousJob::plan_event(VirtualTime at, JobEvent::Kind kind, int w,
                                        BucketId bucket) {
  const JobEvent event{
      .kind = kind, .worker = w, .incarnation = worker(w).incarnation, .bucket = bucket};
  if (at == now()) return on_event(event);
  queue_.add(at, w, event);
}

void VirtualAsynchronousJob::kill(int w, std::optional<double> restart_seconds) {
  VirtualWorker& of = worker(w);
  if (!of.is_alive) return;
  WorkerAccount& times = account(w);
  const bool waits =
      of.doing == Doing::kExchanging || (of.doing == Doing::kComputing && of.values_missing > 0);
  if (of.doing == Doing::kComputing && !waits) {
    times.compute += std::max(VirtualTime(0), now() - of.begun);
  }
  if (waits) {
    const VirtualTime since = of.doing == Doing::kExchanging ? of.computed : of.begun;
    (network_.is_plain() ? times.peers : times.communication) += now() - since;
  }
  if (of.doing == Doing::kIdle) times.peers += now() - of.idle_since;
  // A server applies the gradients that have arrived, even if their worker has died.
  for (BucketId b = 0; b < buckets_.count(); ++b) {
    if (of.is_queued[static_cast<std::size_t>(b)]) served(w, b);
  }
  of.doing = Doing::kNothing;
  of.is_alive = false;
  std::erase(waiting_, w);
  shard_.leave(w, of.incarnation);
  if (!of.is_in_shard) {
    lose_batches(w);
  } else if (of.lease) {
    ledger_.give_back(w, *of.lease);
  }
  of.lease.reset();
  statistics_.forget(w);
  last_kill_ = fmt::format("worker {} was killed at {:.6g} s", w, seconds_of(now()));
  if (!restart_seconds) return;
  queue_.add(now() + virtual_time(*restart_seconds), w,
             {.kind = JobEvent::Kind::kJoin, .worker = w});
}

void VirtualAsynchronousJob::lose_batches(int w) {
  worker(w).pushed.clear();
  worker(w).is_in_shard = false;
  ledger_.give_back(w);
}

void VirtualAsynchronousJob::wait_for_batch(int w) {
  VirtualWorker& of = worker(w);
  if (of.doing != Doing::kExchanging) return;
  const auto first = static_cast<std::size_t>(buckets_.first_used());
  if (!of.has_values[first]) return;
  add_wait(account(w), of.trips[first], of.computed, now());
  of.doing = Doing::kIdle;
  of.idle_since = now();
  waiting_.push_back(w);
}

void VirtualAsynchronousJob::begin(int w, const ps::SampleRange& lease) {
  VirtualWorker& of = worker(w);
  account(w).peers += now() - of.idle_since;
  if (lease.epoch > epoch_) {
    epoch_ = lease.epoch;
    lines_.begin_epoch();
  }
  of.lease = lease;
  of.learning_rate = learning_rate_ = plan_.schedule.learning_rate(
      epochs_at({.epoch = lease.epoch, .offset = lease.begin, .untrained = {}}, plan_.dataset_size,
                plan_.batch()));
  of.doing = Doing::kComputing;
  of.begun = now();
  of.compute = delays_.take(w, account(w).steps + 1, now());
  if (of.values_missing == 0) compute(w);
}

void VirtualAsynchronousJob::compute(int w) {
  VirtualWorker& of = worker(w);
  const StepStart start = start_of_step(buckets_, of.trips, of.begun, of.compute);
  add_wait(account(w), of.trips[static_cast<std::size_t>(start.last)], of.begun, start.at);
  of.begun = start.at;
  if (has_rounds()) {
    queue_.add(start.at + of.compute, w,
               {.kind = JobEvent::Kind::kStepped, .worker = w, .incarnation = of.incarnation});
    return;
  }
  for (BucketId b = 0; b < buckets_.count(); ++b) {
    queue_.add(start.at + buckets_.completion(b, of.compute), w,
               {.kind = JobEvent::Kind::kCompleted,
                .worker = w,
                .incarnation = of.incarnation,
                .bucket = b});
  }
}

Scores VirtualAsynchronousJob::compute_gradient(VirtualWorker& of) {
  const std::int64_t count = of.lease->end - of.lease->begin;
  reader_.fill(*of.lease, is_summed() ? batches_per_step_ * count : count, slot_);
  device_.load(of.values);
  return device_.train(slot_.batch, of.state);
}

void VirtualAsynchronousJob::train(int w) {
  VirtualWorker& of = worker(w);
  const Scores scores = compute_gradient(of);
  take_push(of, {{*of.lease, scores}}, of.learning_rate);
  of.lease.reset();
}

void VirtualAsynchronousJob::take_push(VirtualWorker& of,
                                       std::vector<VirtualWorker::TrainedBatch> batches,
                                       double rate) {
  // The push of the only bucket of an async or ssp job without links is applied before the device
  // computes the next gradient.
  const bool applied_at_once = !merges_pushes() && network_.is_plain() &&
                               server_bytes_per_second_ == 0.0 && buckets_.count() == 1;
  of.gradient->take(device_.gradients(), !applied_at_once);
  of.values_missing = buckets_.count();
  of.has_values.assign(of.has_values.size(), false);
  of.pushed = std::move(batches);
  of.pushed_rate = rate;
  ++of.sequence;
}

void VirtualAsynchronousJob::process_due_work() {
  for (bool is_busy = true; is_busy;) {
    is_busy = false;
    for (BucketId b = 0; b < buckets_.count(); ++b) {
      events_.clear();
      shard_.work(b, events_);
      is_busy |= !events_.empty();
      on_shard_events(b);
    }
    while (!waiting_.empty() && !is_time_up()) {
      const std::optional<ps::SampleRange> lease = ledger_.grant(waiting_.front());
      if (!lease) break;
      const int w = waiting_.front();
      waiting_.pop_front();
      begin(w, *lease);
    }
    is_busy |= push_incomplete_rounds();
    is_busy |= rest_idle_workers();
  }
}

void VirtualAsynchronousJob::end_step(const ps::ShardEvent& event) {
  VirtualWorker& of = worker(event.worker);
  of.done = event.sequence;
  of.is_in_shard = false;
  of.is_resting = false;
  if (event.kind == ps::ShardEvent::Kind::kDropped) {
    for (const auto& trained : of.pushed) ledger_.give_back(event.worker, trained.batch);
    return;
  }
  if (of.is_alive) statistics_.add(event.worker, event.sequence, of.pushed_samples(), of.state);
  for (const auto& trained : of.pushed) {
    if (!ledger_.mark_trained(event.worker, event.sequence, trained.batch)) continue;
    ledger_.forget({{event.worker, event.sequence}});
    count_batch(trained.scores);
  }
}

bool VirtualAsynchronousJob::rest_idle_workers() {
  if (plan_.strategy.consistency.consistency == ps::Consistency::kAsync) return false;
  if (!is_all_handed_out()) return false;
  bool is_any = false;
  for (const int w : waiting_) {
    VirtualWorker& of = worker(w);
    if (of.is_resting || of.values_missing > 0 || ledger_.holds_any(w)) continue;
    of.is_resting = is_any = true;
    shard_.rest(w, of.incarnation, of.done);
  }
  return is_any;
}

void VirtualAsynchronousJob::count_batch(const Scores& scores) {
  lines_.add(scores, ledger_.batches_trained() / batches_per_step_);
  if (!std::isfinite(scores.loss)) {
    throw diverged(describe_divergence(scores.loss),
                   {.step = lines_.sums().step, .learning_rate = learning_rate_});
  }
  lines_.step(moment(), accounts_, false);
  // The evaluation after the last batch is not made here: its gradients may not have reached all
  // servers yet.
  if (!is_over() && evaluation_due()) evaluate();
}

// Returns whether the step that has just ended is followed by an evaluation, as in a real job.
bool VirtualAsynchronousJob::evaluation_due() const {
  const TrainLoopOptions& loop = plan_.loop;
  const std::int64_t batches = ledger_.batches_trained();
  if (loop.eval_every_steps > 0) {
    return batches % batches_per_step_ == 0 && lines_.sums().step % loop.eval_every_steps == 0;
  }
  return loop.eval_every_epochs > 0 && batches % plan_.batches_per_epoch() == 0 &&
         batches / plan_.batches_per_epoch() % loop.eval_every_epochs == 0;
}

Evaluation VirtualAsynchronousJob::evaluate() {
  device_.load(shard_.values().f32());
  const Evaluation watched = device_.evaluate(statistics_.average({}));
  lines_.evaluation(moment(), watched);
  return watched;
}

void VirtualAsynchronousJob::finish_accounts() {
  for (int w = 0; w < plan_.places; ++w) {
    VirtualWorker& of = worker(w);
    if (ps::drops_gradients(plan_.strategy.consistency)) account(w).dropped = of.drops.totals();
    if (of.doing == VirtualWorker::Doing::kIdle && of.idle_since < end_)
      account(w).peers += end_ - of.idle_since;
    of.doing = VirtualWorker::Doing::kNothing;
  }
}

JobLines::Moment VirtualAsynchronousJob::moment() const {
  const std::int64_t samples_per_epoch = plan_.batches_per_epoch() * plan_.batch();
  return {
      .at = end_,
      .epochs = static_cast<double>(lines_.sums().samples) / static_cast<double>(samples_per_epoch),
      .learning_rate = learning_rate_,
      .staleness_mean = staleness_.mean(),
      .staleness_max = static_cast<std::int64_t>(staleness_.max())};
}

std::vector<WorkerStaleness> VirtualAsynchronousJob::staleness() const {
  std::vector<WorkerStaleness> all;
  for (const ps::StalenessHistogram& histogram : shard_.staleness()) {
    all.push_back({static_cast<int>(all.size()), histogram});
  }
  return all;
}

std::string VirtualAsynchronousJob::describe_standstill() const {
  const std::int64_t all = ledger_.options().total_batches;
  return fmt::format(
      "no worker is left to train: {}, when {} of {} batches were still to be trained; give --kill "
      "restart=SECONDS to restart workers",
      last_kill_, all - ledger_.batches_trained(), all);
}

void VirtualAsynchronousJob::join(int w) {
  VirtualWorker& of = worker(w);
  if (of.is_alive) return;
  if (of.is_in_shard) lose_batches(w);  // a new incarnation cancels the push of the earlier one
  ++of.incarnation;
  of.is_alive = true;
  of.is_resting = false;
  of.done = of.sequence;
  of.values.resize(shard_.values().f32().size());
  of.versions.resize(shard_.buckets().size());
  of.state = statistics_.average({});
  of.gradient.emplace(plan_.strategy.parameter_server.compression, plan_.placement);
  of.round.clear();
  of.inner.reset();
  of.updates = 0;
  of.doing = Doing::kExchanging;
  of.computed = now();
  of.trips.assign(shard_.buckets().size(), {.sent = now(), .answered = now(), .arrived = now()});
  of.has_values.assign(shard_.buckets().size(), false);
  of.is_queued.assign(shard_.buckets().size(), false);
  of.values_missing = buckets_.count();
  account(w).has_joined = true;
  shard_.join(w, of.incarnation, of.sequence);
  // The shard must answer reads itself, because delay compensation needs the values that were sent.
  for (BucketId b = 0; b < buckets_.count(); ++b) {
    const bool takes_part = shard_.read({.worker = w,
                                         .incarnation = of.incarnation,
                                         .bucket = b,
                                         .values = values_of(of, b),
                                         .token = of.incarnation});
    check(takes_part, "a worker that has joined may read");
  }
}

}  // namespace syncopate::bench
