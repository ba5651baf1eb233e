#include "bench/compare/virtual/asynchronous.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>

#include "bench/compare/virtual/network.h"
#include "bench/compare/virtual/service_times.h"
#include "bench/compare/virtual/virtual_worker.h"
#include "models/base/errors.h"
#include "ps/running_statistics.h"
#include "ps/shard.h"
#include "worker/divergence.h"
#include "worker/input/batch_reader.h"
#include "worker/weights_hash.h"

namespace syncopate::bench {
namespace {

using Doing = VirtualWorker::Doing;

VirtualTime virtual_time(double seconds) { return VirtualTime(std::llround(seconds * 1e9)); }

struct Happening {
  enum class Kind : std::uint8_t { kComputed, kPushed, kAnswered, kKill, kJoin };
  Kind kind = Kind::kComputed;
  int worker = 0;
  std::uint32_t incarnation = 0;            // that it concerns; kKill, kJoin: any
  int server = 0;                           // kPushed, kAnswered
  std::optional<double> restart_seconds{};  // kKill
};

class Job {
 public:
  Job(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device, MetricsWriter& metrics,
      const std::function<void(double)>& progress)
      : plan_(plan),
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
        lines_(plan, ledger_.options().total_batches / batches_per_step(plan), metrics, progress),
        workers_(static_cast<std::size_t>(plan.places)),
        accounts_(workers_.size()) {
    for (std::size_t b = 0; b < plan.placement.owner.size(); ++b) {
      if (plan.placement.owner[b] == 0) last_of_server_0_ = static_cast<BucketId>(b);
    }
    schedule(run.trouble);
  }

  VirtualOutcome run() {
    while (!queue_.empty()) {
      happen(queue_.take());
      settle();
    }
    if (!ledger_.all_trained()) throw PeerError(why_it_stands_still());
    finish_accounts();
    lines_.step(moment(), accounts_, true);
    device_.load(shard_.values().f32());
    if (!all_finite({.values = shard_.values(), .slots = {}, .state = no_state()})) {
      throw diverged_here("the weights are no longer finite");
    }
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

 private:
  static Tensor copy_of(const Tensor& values);
  static Tensor no_state() { return make_host_tensor({0}, DType::kF32); }
  static std::int64_t batches_per_step(const VirtualPlan& plan);
  static ps::LedgerOptions ledger_options(const VirtualPlan& plan);

  VirtualWorker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  WorkerAccount& account(int w) { return accounts_[static_cast<std::size_t>(w)]; }
  VirtualTime now() const noexcept { return queue_.now(); }

  void schedule(const Trouble& trouble);
  void happen(const Happening& event);
  void join(int w);
  void kill(int w, std::optional<double> restart_seconds);
  // Has all its values.
  void go_on(int w);
  void begin(int w, const ps::SampleRange& lease);
  void computed(int w);
  void pushed(int w, int server);
  void answered(int w);
  // Does what is due on the shard, and hands out batches.
  void settle();
  void hear(const ps::ShardEvent& event);
  void send_values(int w, int server);
  void end_step(const ps::ShardEvent& event);
  void count_batch(const ps::ShardEvent& event, VirtualWorker& of);
  bool rest_idle_workers();
  Evaluation evaluate();
  void finish_accounts();
  JobLines::Moment moment() const;
  std::vector<WorkerStaleness> staleness() const;
  std::string why_it_stands_still() const;
  DivergenceError diverged_here(const std::string& what) const {
    return diverged(what, {.step = lines_.sums().step, .learning_rate = learning_rate_});
  }

  const VirtualPlan& plan_;
  VirtualDevice& device_;
  ps::Shard shard_;
  ps::Ledger ledger_;
  const BatchReader reader_;
  BatchSlot slot_;
  ps::RunningStatistics statistics_;
  Network network_;
  ServiceTimes services_;
  JobLines lines_;
  EventQueue<Happening> queue_;
  std::vector<VirtualWorker> workers_;
  std::vector<WorkerAccount> accounts_;
  std::deque<int> waiting_;  // for a batch; first come, first served
  std::vector<ps::ShardEvent> events_;
  ps::StalenessHistogram staleness_;  // of all applied so far
  BucketId last_of_server_0_ = 0;     // its push ends a step
  std::int64_t epoch_ = -1;           // the last one begun
  double learning_rate_ = 0.0;
  VirtualTime end_{0};  // the last push was applied
  std::string last_kill_;
};

Tensor Job::copy_of(const Tensor& values) {
  const Tensor copy = make_host_tensor(values.shape(), DType::kF32);
  std::ranges::copy(values.f32(), copy.f32().begin());
  return copy;
}

std::int64_t Job::batches_per_step(const VirtualPlan& plan) {
  const ps::ConsistencyOptions& consistency = plan.strategy.consistency;
  return consistency.consistency == ps::Consistency::kSync
             ? plan.workers - consistency.backup_workers
             : 1;
}

ps::LedgerOptions Job::ledger_options(const VirtualPlan& plan) {
  ps::LedgerOptions options{.dataset_size = plan.dataset_size, .batch_size = plan.batch()};
  options.total_batches = plan.loop.total_steps ? *plan.loop.total_steps * batches_per_step(plan)
                                                : ps::batches_left(options, plan.loop.total_epochs);
  return options;
}

void Job::schedule(const Trouble& trouble) {
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

void Job::happen(const Happening& event) {
  using Kind = Happening::Kind;
  const int w = event.worker;
  // Troubles that come when all is trained are nobody's.
  if (event.kind == Kind::kKill || event.kind == Kind::kJoin) {
    if (ledger_.all_trained()) return;
    return event.kind == Kind::kKill ? kill(w, event.restart_seconds) : join(w);
  }
  const VirtualWorker& of = worker(w);
  if (!of.is_alive || of.incarnation != event.incarnation) return;  // lost with its worker
  if (event.kind == Kind::kComputed) return computed(w);
  if (event.kind == Kind::kPushed) return pushed(w, event.server);
  answered(w);
}

void Job::join(int w) {
  VirtualWorker& of = worker(w);
  if (of.is_alive) return;
  ++of.incarnation;
  of.is_alive = true;
  of.is_resting = false;
  of.heard = of.sequence;
  of.values.resize(shard_.values().f32().size());
  of.versions.resize(shard_.buckets().size());
  of.state = statistics_.average({});
  of.gradient.emplace(plan_.strategy.parameter_server.compression, plan_.placement);
  of.doing = Doing::kExchanging;
  of.computed = of.sent = of.answered = now();
  of.unanswered.assign(static_cast<std::size_t>(plan_.servers()), 0);
  of.parts_missing = plan_.servers();
  account(w).took_part = true;
  shard_.join(w, of.incarnation, of.sequence);
  // Read, not copied: delay compensation compares with what the shard gave out.
  for (std::size_t b = 0; b < of.versions.size(); ++b) {
    const Bucket& range = shard_.buckets()[b];
    ++of.unanswered[static_cast<std::size_t>(plan_.placement.owner[b])];
    const bool takes_part = shard_.read(
        {.worker = w,
         .incarnation = of.incarnation,
         .bucket = static_cast<BucketId>(b),
         .values = std::span(of.values).subspan(static_cast<std::size_t>(range.begin),
                                                static_cast<std::size_t>(range.end - range.begin)),
         .token = of.incarnation});
    check(takes_part, "a worker reads that has joined");
  }
}

void Job::kill(int w, std::optional<double> restart_seconds) {
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

void Job::go_on(int w) {
  VirtualWorker& of = worker(w);
  of.doing = Doing::kIdle;
  of.idle_since = now();
  waiting_.push_back(w);
}

void Job::begin(int w, const ps::SampleRange& lease) {
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

void Job::computed(int w) {
  VirtualWorker& of = worker(w);
  WorkerAccount& its = account(w);
  const std::int64_t count = of.lease->end - of.lease->begin;
  reader_.fill(*of.lease, batches_per_step(plan_) * count, slot_);
  device_.load(of.values);
  of.scores = device_.train(slot_.batch, of.state);
  // Alone, it is applied before the device computes another one.
  const bool applied_at_once =
      plan_.strategy.consistency.consistency != ps::Consistency::kSync && network_.is_plain();
  of.gradient->take(device_.gradients(), !applied_at_once);
  ++its.steps;
  its.samples += of.scores.num_samples;
  its.compute += now() - of.begun;
  of.doing = Doing::kExchanging;
  of.computed = of.sent = now();
  ++of.sequence;
  const int servers = plan_.servers();
  of.parts_missing = servers;
  std::ranges::fill(of.unanswered, 0);
  for (const int owner : plan_.placement.owner) ++of.unanswered[static_cast<std::size_t>(owner)];
  for (int i = 0; i < servers; ++i) {
    const int s = (w + i) % servers;  // so that not all begin with the same server
    const std::int64_t bytes = of.gradient->bytes_to(s);
    its.bytes_sent += bytes;
    const VirtualTime there = network_.up(now(), w, s, bytes);
    if (there == now()) {
      pushed(w, s);
    } else {
      queue_.add(there, w, {Happening::Kind::kPushed, w, of.incarnation, s});
    }
  }
}

void Job::pushed(int w, int server) {
  VirtualWorker& of = worker(w);
  of.sent = now();
  for (std::size_t b = 0; b < of.versions.size(); ++b) {
    if (plan_.placement.owner[b] != server) continue;
    const auto bucket = static_cast<BucketId>(b);
    const Bucket& range = shard_.buckets()[b];
    const bool takes_part = shard_.push(
        {.id = {w, of.incarnation, of.sequence},
         .bucket = bucket,
         .version = of.versions[b],
         .learning_rate = static_cast<float>(of.learning_rate),
         .gradient = of.gradient->part(bucket),
         .values = std::span(of.values).subspan(static_cast<std::size_t>(range.begin),
                                                static_cast<std::size_t>(range.end - range.begin)),
         .token = of.incarnation});
    check(takes_part, "a living worker takes part");
  }
}

void Job::settle() {
  for (bool is_busy = true; is_busy;) {
    events_.clear();
    for (std::size_t b = 0; b < shard_.buckets().size(); ++b) {
      shard_.work(static_cast<BucketId>(b), events_);
    }
    is_busy = !events_.empty();
    for (const ps::ShardEvent& event : events_) hear(event);
    while (!waiting_.empty()) {
      const std::optional<ps::SampleRange> lease = ledger_.grant(waiting_.front());
      if (!lease) break;
      const int w = waiting_.front();
      waiting_.pop_front();
      begin(w, *lease);
    }
    is_busy |= rest_idle_workers();
  }
}

void Job::hear(const ps::ShardEvent& event) {
  using Kind = ps::ShardEvent::Kind;
  VirtualWorker& of = worker(event.worker);
  const bool is_its_own = of.is_alive && of.incarnation == event.token;
  switch (event.kind) {
    case Kind::kApplied:
      staleness_.add(event.staleness);
      end_ = now();
      [[fallthrough]];
    case Kind::kDropped:
      if (is_its_own && event.bucket == last_of_server_0_) end_step(event);
      return;
    case Kind::kAnswered: {
      if (!is_its_own) return;
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

void Job::send_values(int w, int server) {
  VirtualWorker& of = worker(w);
  of.answered = now();
  // What training starts from is the seed's: every worker has it.
  const bool travels = of.sequence > 0 || now() > VirtualTime(0);
  const std::int64_t bytes = travels ? bytes_of_values(plan_.placement, server) : 0;
  account(w).bytes_received += bytes;
  const VirtualTime there = travels ? network_.down(now(), server, w, bytes) : now();
  if (there == now()) return answered(w);
  queue_.add(there, w, {Happening::Kind::kAnswered, w, of.incarnation, server});
}

void Job::answered(int w) {
  VirtualWorker& of = worker(w);
  if (--of.parts_missing > 0) return;
  const VirtualTime peers = std::max(VirtualTime(0), of.answered - of.sent);
  account(w).peers += peers;
  account(w).communication += now() - of.computed - peers;
  go_on(w);
}

void Job::end_step(const ps::ShardEvent& event) {
  VirtualWorker& of = worker(event.worker);
  of.heard = event.sequence;
  of.is_resting = false;
  const ps::SampleRange batch = *of.lease;
  of.lease.reset();
  if (event.kind == ps::ShardEvent::Kind::kDropped) return ledger_.give_back(event.worker, batch);
  statistics_.add(event.worker, event.sequence, of.scores.num_samples, of.state);
  if (!ledger_.trained(event.worker, event.sequence, batch)) return;
  ledger_.forget({{event.worker, event.sequence}});
  count_batch(event, of);
}

void Job::count_batch(const ps::ShardEvent& /*event*/, VirtualWorker& of) {
  const std::int64_t batches = ledger_.batches_trained();
  const std::int64_t per_step = batches_per_step(plan_);
  lines_.add(of.scores, batches / per_step);
  if (!std::isfinite(of.scores.loss)) throw diverged_here(describe_divergence(of.scores.loss));
  lines_.step(moment(), accounts_, false);
  if (ledger_.all_trained()) return;  // what is under way to other servers comes first
  const TrainLoopOptions& loop = plan_.loop;
  const bool by_steps = loop.eval_every_steps > 0;
  const bool ends_step = batches % per_step == 0;
  const bool ends_epoch = batches % plan_.batches_per_epoch() == 0;
  const std::int64_t epochs = batches / plan_.batches_per_epoch();
  if (by_steps ? ends_step && lines_.sums().step % loop.eval_every_steps == 0
               : ends_epoch && loop.eval_every_epochs > 0 && epochs % loop.eval_every_epochs == 0) {
    evaluate();
  }
}

// As ps/coordinator/lease_queue.cc: the last batches of a job are fewer than workers, and who has
// none must not be waited for.
bool Job::rest_idle_workers() {
  if (plan_.strategy.consistency.consistency == ps::Consistency::kAsync) return false;
  if (!ledger_.all_handed_out()) return false;
  bool is_any = false;
  for (const int w : waiting_) {
    VirtualWorker& of = worker(w);
    if (of.is_resting || ledger_.holds_any(w)) continue;
    of.is_resting = is_any = true;
    shard_.rest(w, of.incarnation, of.heard);
  }
  return is_any;
}

Evaluation Job::evaluate() {
  device_.load(shard_.values().f32());
  const Evaluation test = device_.evaluate(statistics_.average({}));
  lines_.evaluation(moment(), test);
  return test;
}

void Job::finish_accounts() {
  for (int w = 0; w < plan_.places; ++w) {
    VirtualWorker& of = worker(w);
    if (of.doing == Doing::kIdle && of.idle_since < end_) account(w).peers += end_ - of.idle_since;
    of.doing = Doing::kNothing;
  }
}

JobLines::Moment Job::moment() const {
  const std::int64_t samples_per_epoch = plan_.batches_per_epoch() * plan_.batch();
  return {
      .at = end_,
      .epochs = static_cast<double>(lines_.sums().samples) / static_cast<double>(samples_per_epoch),
      .learning_rate = learning_rate_,
      .staleness_mean = staleness_.mean(),
      .staleness_max = static_cast<std::int64_t>(staleness_.max())};
}

std::vector<WorkerStaleness> Job::staleness() const {
  std::vector<WorkerStaleness> all;
  for (const ps::StalenessHistogram& histogram : shard_.staleness()) {
    all.push_back({static_cast<int>(all.size()), histogram});
  }
  return all;
}

std::string Job::why_it_stands_still() const {
  const std::int64_t all = ledger_.options().total_batches;
  return "nobody is left to train: " + last_kill_ + ", when " +
         std::to_string(all - ledger_.batches_trained()) + " of " + std::to_string(all) +
         " batches were still to be trained; let workers come back with restart=SECONDS";
}

}  // namespace

VirtualOutcome train_without_step(const VirtualRun& run, const VirtualPlan& plan,
                                  VirtualDevice& device, MetricsWriter& metrics,
                                  const std::function<void(double)>& progress) {
  return Job(run, plan, device, metrics, progress).run();
}

}  // namespace syncopate::bench
