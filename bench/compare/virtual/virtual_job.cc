#include "bench/compare/virtual/virtual_job.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/checkpoint/weights_hash.h"

namespace syncopate::bench {
namespace {

using Doing = VirtualWorker::Doing;

VirtualTime virtual_time(double seconds) { return VirtualTime(std::llround(seconds * 1e9)); }

Tensor copy_of(const Tensor& values) {
  const Tensor copy = make_host_tensor(values.shape(), DType::kF32);
  std::ranges::copy(values.f32(), copy.f32().begin());
  return copy;
}

std::int64_t batches_per_step(const VirtualPlan& plan) {
  const ps::ConsistencyOptions& consistency = plan.strategy.consistency;
  return consistency.consistency == ps::Consistency::kSync
             ? plan.workers - consistency.backup_workers
             : 1;
}

ps::LedgerOptions ledger_options(const VirtualPlan& plan) {
  ps::LedgerOptions options{.dataset_size = plan.dataset_size, .batch_size = plan.batch()};
  options.total_batches = plan.loop.total_steps ? *plan.loop.total_steps * batches_per_step(plan)
                                                : ps::batches_left(options, plan.loop.total_epochs);
  return options;
}

}  // namespace

VirtualJob::VirtualJob(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device,
                       MetricsWriter& metrics, const std::function<void(double)>& progress)
    : plan_(plan),
      batches_per_step_(batches_per_step(plan)),
      device_(device),
      shard_(run.graph.parameter_layout(), plan.placement.buckets,
             make_optimizer(plan.strategy.optimizer), plan.strategy.consistency,
             copy_of(device.values())),
      ledger_(ledger_options(plan)),
      reader_(*run.data.train, plan.input, {}),
      slot_(reader_.make_slot()),
      statistics_({device.state().begin(), device.state().end()}),
      network_(run.trouble.link, plan.places, plan.servers()),
      services_(run.trouble, plan.strategy.seed),
      lines_(plan, ledger_.options().total_batches / batches_per_step_, metrics, progress),
      workers_(static_cast<std::size_t>(plan.places)),
      accounts_(workers_.size()) {
  for (std::size_t b = 0; b < plan.placement.owner.size(); ++b) {
    if (plan.placement.owner[b] == 0) last_of_server_0_ = static_cast<BucketId>(b);
  }
  schedule(run.trouble);
}

VirtualOutcome VirtualJob::run() {
  while (!queue_.empty()) {
    happen(queue_.take());
    settle();
  }
  if (!is_over()) throw PeerError(why_it_stands_still());
  finish_accounts();
  lines_.step(moment(), accounts_, true);
  device_.load(shard_.values().f32());
  require_finite(shard_, lines_.sums().step, learning_rate_);
  const Evaluation test = evaluate();
  lines_.workers(accounts_);
  return {.sums = lines_.sums(),
          .end = end_,
          .train_loss = lines_.train_loss(),
          .test = test,
          .weights_hash = weights_hash(shard_.values()),
          .accounts = accounts_,
          .staleness = staleness()};
}

void VirtualJob::schedule(const Trouble& trouble) {
  std::vector<bool> comes_later(workers_.size());
  for (const Join& join : trouble.joins) {
    comes_later[static_cast<std::size_t>(join.worker)] = true;
    queue_.add(virtual_time(join.at_seconds), join.worker,
               {.kind = Happening::Kind::kJoin, .worker = join.worker});
  }
  for (int w = 0; w < plan_.workers; ++w) {
    if (comes_later[static_cast<std::size_t>(w)]) continue;
    queue_.add(VirtualTime(0), w, {.kind = Happening::Kind::kJoin, .worker = w});
  }
  for (const Kill& kill : trouble.kills) {
    queue_.add(virtual_time(kill.at_seconds), kill.worker,
               {.kind = Happening::Kind::kKill,
                .worker = kill.worker,
                .restart_seconds = kill.restart_seconds});
  }
}

void VirtualJob::happen(const Happening& event) {
  using Kind = Happening::Kind;
  const int w = event.worker;
  // Troubles that come when all is trained are nobody's.
  if (event.kind == Kind::kKill || event.kind == Kind::kJoin) {
    if (is_over()) return;
    return event.kind == Kind::kKill ? kill(w, event.restart_seconds) : join(w);
  }
  const VirtualWorker& of = worker(w);
  if (!of.is_alive || of.incarnation != event.incarnation) return;  // lost with its worker
  if (event.kind == Kind::kComputed) return computed(w);
  if (event.kind == Kind::kPushed) return pushed(w, event.server);
  answered(w);
}

void VirtualJob::kill(int w, std::optional<double> restart_seconds) {
  VirtualWorker& of = worker(w);
  if (!of.is_alive) return;
  WorkerAccount& its = account(w);
  if (of.doing == Doing::kComputing) its.compute += now() - of.begun;
  if (of.doing == Doing::kExchanging) {
    (network_.is_plain() ? its.peers : its.communication) += now() - of.computed;
  }
  if (of.doing == Doing::kIdle) its.peers += now() - of.idle_since;
  of.doing = Doing::kNothing;
  of.is_alive = false;
  of.lease.reset();
  std::erase(waiting_, w);
  shard_.leave(w, of.incarnation);
  ledger_.give_back(w);
  statistics_.forget(w);
  last_kill_ =
      "worker " + std::to_string(w) + " was killed at " + std::to_string(seconds_of(now())) + " s";
  if (!restart_seconds) return;
  queue_.add(now() + virtual_time(*restart_seconds), w,
             {.kind = Happening::Kind::kJoin, .worker = w});
}

void VirtualJob::wait_for_batch(int w) {
  VirtualWorker& of = worker(w);
  of.doing = Doing::kIdle;
  of.idle_since = now();
  waiting_.push_back(w);
}

void VirtualJob::begin(int w, const ps::SampleRange& lease) {
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
  const VirtualTime time = services_.take(w, account(w).steps + 1, now());
  queue_.add(now() + time, w,
             {.kind = Happening::Kind::kComputed, .worker = w, .incarnation = of.incarnation});
}

void VirtualJob::computed(int w) {
  VirtualWorker& of = worker(w);
  WorkerAccount& its = account(w);
  const std::int64_t count = of.lease->end - of.lease->begin;
  reader_.fill(*of.lease, batches_per_step_ * count, slot_);
  device_.load(of.values);
  of.scores = device_.train(slot_.batch, of.state);
  // Alone, it is applied before the device computes another one.
  const bool applied_at_once =
      plan_.strategy.consistency.consistency != ps::Consistency::kSync && network_.is_plain();
  of.gradient->take(device_.gradients(), !applied_at_once);
  ++its.steps;
  its.samples += of.scores.num_samples;
  its.compute += now() - of.begun;
  push(w);
}

void VirtualJob::settle() {
  for (bool is_busy = true; is_busy;) {
    events_.clear();
    for (std::size_t b = 0; b < shard_.buckets().size(); ++b) {
      shard_.work(static_cast<BucketId>(b), events_);
    }
    is_busy = !events_.empty();
    for (const ps::ShardEvent& event : events_) hear(event);
    while (!waiting_.empty() && !is_time_up()) {
      const std::optional<ps::SampleRange> lease = ledger_.grant(waiting_.front());
      if (!lease) break;
      const int w = waiting_.front();
      waiting_.pop_front();
      begin(w, *lease);
    }
    is_busy |= rest_idle_workers();
  }
}

void VirtualJob::end_step(const ps::ShardEvent& event) {
  VirtualWorker& of = worker(event.worker);
  of.heard = event.sequence;
  of.is_resting = false;
  const ps::SampleRange batch = *of.lease;
  of.lease.reset();
  if (event.kind == ps::ShardEvent::Kind::kDropped) return ledger_.give_back(event.worker, batch);
  statistics_.add(event.worker, event.sequence, of.scores.num_samples, of.state);
  if (!ledger_.mark_trained(event.worker, event.sequence, batch)) return;
  ledger_.forget({{event.worker, event.sequence}});
  count_batch(of.scores);
}

bool VirtualJob::rest_idle_workers() {
  if (plan_.strategy.consistency.consistency == ps::Consistency::kAsync) return false;
  if (!is_all_handed_out()) return false;
  bool is_any = false;
  for (const int w : waiting_) {
    VirtualWorker& of = worker(w);
    if (of.is_resting || ledger_.holds_any(w)) continue;
    of.is_resting = is_any = true;
    shard_.rest(w, of.incarnation, of.heard);
  }
  return is_any;
}

}  // namespace syncopate::bench
