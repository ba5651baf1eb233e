#include "bench/virtual_clock/virtual_asynchronous_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

VirtualAsynchronousJob::VirtualAsynchronousJob(const VirtualRun& run, const VirtualPlan& plan,
                                               VirtualDevice& device, MetricsWriter& metrics,
                                               const std::function<void(double)>& progress)
    : plan_(plan),
      batches_per_step_(batches_per_step(plan)),
      value_bytes_(value_bytes_by_server(plan.placement, plan.servers(), plan.values_format())),
      device_(device),
      shard_(run.graph.parameter_layout(), plan.placement.buckets,
             make_optimizer(plan.strategy.optimizer), plan.strategy.consistency,
             copy_of(device.values()), plan.values_format()),
      ledger_(ledger_options(plan)),
      reader_(*run.data.train, plan.input, {}),
      slot_(reader_.make_slot()),
      statistics_({device.state().begin(), device.state().end()}),
      network_(run.faults.link, plan.places, plan.servers()),
      delays_(run.faults, plan.strategy.seed),
      lines_(plan, ledger_.options().total_batches / batches_per_step_, metrics, progress),
      workers_(static_cast<std::size_t>(plan.places)),
      accounts_(workers_.size()) {
  for (std::size_t b = 0; b < plan.placement.owner.size(); ++b) {
    if (plan.placement.owner[b] == 0) last_of_server_0_ = static_cast<BucketId>(b);
  }
  schedule(run.faults);
}

VirtualOutcome VirtualAsynchronousJob::run() {
  while (!queue_.empty()) {
    on_event(queue_.take());
    process_due_work();
  }
  if (!is_over()) throw PeerError(describe_standstill());
  finish_accounts();
  lines_.step(moment(), accounts_, true);
  device_.load(shard_.values().f32());
  require_finite(shard_, lines_.sums().step, learning_rate_);
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
  const VirtualWorker& of = worker(w);
  if (!of.is_alive || of.incarnation != event.incarnation) return;
  if (event.kind == Kind::kComputed) return computed(w);
  if (event.kind == Kind::kPushed) return pushed(w, event.server);
  answered(w);
}

void VirtualAsynchronousJob::kill(int w, std::optional<double> restart_seconds) {
  VirtualWorker& of = worker(w);
  if (!of.is_alive) return;
  WorkerAccount& times = account(w);
  if (of.doing == Doing::kComputing) times.compute += now() - of.begun;
  if (of.doing == Doing::kExchanging) {
    (network_.is_plain() ? times.peers : times.communication) += now() - of.computed;
  }
  if (of.doing == Doing::kIdle) times.peers += now() - of.idle_since;
  of.doing = Doing::kNothing;
  of.is_alive = false;
  of.lease.reset();
  std::erase(waiting_, w);
  shard_.leave(w, of.incarnation);
  ledger_.give_back(w);
  statistics_.forget(w);
  last_kill_ = fmt::format("worker {} was killed at {:.6g} s", w, seconds_of(now()));
  if (!restart_seconds) return;
  queue_.add(now() + virtual_time(*restart_seconds), w,
             {.kind = JobEvent::Kind::kJoin, .worker = w});
}

void VirtualAsynchronousJob::wait_for_batch(int w) {
  VirtualWorker& of = worker(w);
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
  const VirtualTime time = delays_.take(w, account(w).steps + 1, now());
  queue_.add(now() + time, w,
             {.kind = JobEvent::Kind::kComputed, .worker = w, .incarnation = of.incarnation});
}

void VirtualAsynchronousJob::computed(int w) {
  VirtualWorker& of = worker(w);
  WorkerAccount& times = account(w);
  const std::int64_t count = of.lease->end - of.lease->begin;
  reader_.fill(*of.lease, batches_per_step_ * count, slot_);
  device_.load(of.values);
  of.scores = device_.train(slot_.batch, of.state);
  // Without links, an async or ssp push is applied before the device computes the next gradient.
  const bool applied_at_once =
      plan_.strategy.consistency.consistency != ps::Consistency::kSync && network_.is_plain();
  of.gradient->take(device_.gradients(), !applied_at_once);
  ++times.steps;
  times.samples += of.scores.num_samples;
  times.compute += now() - of.begun;
  push(w);
}

void VirtualAsynchronousJob::process_due_work() {
  for (bool is_busy = true; is_busy;) {
    events_.clear();
    for (std::size_t b = 0; b < shard_.buckets().size(); ++b) {
      shard_.work(static_cast<BucketId>(b), events_);
    }
    is_busy = !events_.empty();
    for (const ps::ShardEvent& event : events_) on_shard_event(event);
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

void VirtualAsynchronousJob::end_step(const ps::ShardEvent& event) {
  VirtualWorker& of = worker(event.worker);
  of.done = event.sequence;
  of.is_resting = false;
  const ps::SampleRange batch = *of.lease;
  of.lease.reset();
  if (event.kind == ps::ShardEvent::Kind::kDropped) return ledger_.give_back(event.worker, batch);
  statistics_.add(event.worker, event.sequence, of.scores.num_samples, of.state);
  if (!ledger_.mark_trained(event.worker, event.sequence, batch)) return;
  ledger_.forget({{event.worker, event.sequence}});
  count_batch(of.scores);
}

bool VirtualAsynchronousJob::rest_idle_workers() {
  if (plan_.strategy.consistency.consistency == ps::Consistency::kAsync) return false;
  if (!is_all_handed_out()) return false;
  bool is_any = false;
  for (const int w : waiting_) {
    VirtualWorker& of = worker(w);
    if (of.is_resting || ledger_.holds_any(w)) continue;
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
  ++of.incarnation;
  of.is_alive = true;
  of.is_resting = false;
  of.done = of.sequence;
  of.values.resize(shard_.values().f32().size());
  of.versions.resize(shard_.buckets().size());
  of.state = statistics_.average({});
  of.gradient.emplace(plan_.strategy.parameter_server.compression, plan_.placement);
  of.doing = Doing::kExchanging;
  of.computed = of.sent = of.answered = now();
  of.unanswered.assign(static_cast<std::size_t>(plan_.servers()), 0);
  of.parts_missing = plan_.servers();
  account(w).has_joined = true;
  shard_.join(w, of.incarnation, of.sequence);
  // The shard must answer reads itself, because delay compensation needs the values that were sent.
  for (std::size_t b = 0; b < of.versions.size(); ++b) {
    ++of.unanswered[static_cast<std::size_t>(plan_.placement.owner[b])];
    const bool takes_part = shard_.read({.worker = w,
                                         .incarnation = of.incarnation,
                                         .bucket = static_cast<BucketId>(b),
                                         .values = values_of(of, b),
                                         .token = of.incarnation});
    check(takes_part, "a worker that has joined may read");
  }
}

void VirtualAsynchronousJob::push(int w) {
  VirtualWorker& of = worker(w);
  of.doing = Doing::kExchanging;
  of.computed = of.sent = now();
  ++of.sequence;
  const int servers = plan_.servers();
  of.parts_missing = servers;
  std::ranges::fill(of.unanswered, 0);
  for (const int owner : plan_.placement.owner) ++of.unanswered[static_cast<std::size_t>(owner)];
  for (int i = 0; i < servers; ++i) {
    const int s = (w + i) % servers;  // each worker begins with another server
    const std::int64_t bytes = of.gradient->bytes_to(s);
    account(w).bytes_sent += bytes;
    const VirtualTime there = network_.up(now(), w, s, bytes);
    if (there == now()) {
      pushed(w, s);
    } else {
      queue_.add(there, w, {JobEvent::Kind::kPushed, w, of.incarnation, s});
    }
  }
}

void VirtualAsynchronousJob::pushed(int w, int server) {
  VirtualWorker& of = worker(w);
  of.sent = now();
  for (std::size_t b = 0; b < of.versions.size(); ++b) {
    if (plan_.placement.owner[b] != server) continue;
    const auto bucket = static_cast<BucketId>(b);
    const bool takes_part = shard_.push({.id = {w, of.incarnation, of.sequence},
                                         .bucket = bucket,
                                         .version = of.versions[b],
                                         .learning_rate = static_cast<float>(of.learning_rate),
                                         .gradient = of.gradient->part(bucket),
                                         .values = values_of(of, b),
                                         .token = of.incarnation});
    check(takes_part, "a running worker may push");
  }
}

void VirtualAsynchronousJob::on_shard_event(const ps::ShardEvent& event) {
  using Kind = ps::ShardEvent::Kind;
  VirtualWorker& of = worker(event.worker);
  const bool is_current = of.is_alive && of.incarnation == event.token;
  switch (event.kind) {
    case Kind::kApplied:
      staleness_.add(event.staleness);
      end_ = now();
      [[fallthrough]];
    case Kind::kDropped:
      if (is_current && event.bucket == last_of_server_0_) end_step(event);
      return;
    case Kind::kAnswered: {
      if (!is_current) return;
      const auto b = static_cast<std::size_t>(event.bucket);
      const int server = plan_.placement.owner[b];
      of.versions[b] = event.version;
      if (--of.unanswered[static_cast<std::size_t>(server)] == 0) send_values(event.worker, server);
      return;
    }
    default:
      return;
  }
}

void VirtualAsynchronousJob::send_values(int w, int server) {
  VirtualWorker& of = worker(w);
  of.answered = now();
  // Every worker computes the initial values from the seed, so they are not sent.
  const bool travels = of.sequence > 0 || now() > VirtualTime(0);
  const std::int64_t bytes = travels ? value_bytes_[static_cast<std::size_t>(server)] : 0;
  account(w).bytes_received += bytes;
  const VirtualTime there = travels ? network_.down(now(), server, w, bytes) : now();
  if (there == now()) return answered(w);
  queue_.add(there, w, {JobEvent::Kind::kAnswered, w, of.incarnation, server});
}

void VirtualAsynchronousJob::answered(int w) {
  VirtualWorker& of = worker(w);
  if (--of.parts_missing > 0) return;
  const VirtualTime peers = std::max(VirtualTime(0), of.answered - of.sent);
  account(w).peers += peers;
  account(w).communication += now() - of.computed - peers;
  wait_for_batch(w);
}

}  // namespace syncopate::bench
