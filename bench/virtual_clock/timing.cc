#include "bench/virtual_clock/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "bench/virtual_clock/event_queue.h"
#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/step_times.h"
#include "bench/virtual_clock/time_model.h"
#include "models/base/errors.h"
#include "ps/shard/shared_bucket.h"
#include "ps/shard/stale_gradients.h"
#include "ps/shard/staleness.h"
#include "ps/shard/staleness_counts.h"
#include "strategies/strategy_options.h"

namespace syncopate::bench {
namespace {

constexpr std::int64_t kParts = 10;

std::int64_t whole_parts(std::int64_t updates) {
  return std::max<std::int64_t>(1, (updates + kParts - 1) / kParts) * kParts;
}

// Returns the standard error of the mean of the values, relative to the mean.
double relative_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0.0;
  for (const double value : values) mean += value / n;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return mean > 0.0 ? std::sqrt(squares / (n - 1.0) / n) / mean : 0.0;
}

// Counts the updates of a simulated job after a warm-up, in ten parts, so that neither its
// beginning nor its end is counted.
class TimingWindow {
 public:
  // Counts at least `updates` updates after the first `warm_up` ones.
  TimingWindow(std::int64_t warm_up, std::int64_t updates)
      : warm_up_(warm_up), updates_(whole_parts(updates)) {
    if (warm_up_ == 0) marks_.emplace_back(0);
  }

  bool is_open() const noexcept { return done_ >= warm_up_; }
  bool is_over() const noexcept { return done_ >= warm_up_ + updates_; }
  // Counts an update of the values at time `at`. `accounts` has every worker's use of time so far.
  void update(VirtualTime at, std::span<const WorkerAccount> accounts) {
    ++done_;
    if (done_ < warm_up_ || done_ > warm_up_ + updates_) return;
    if (done_ == warm_up_) begin_ = sum_of(accounts);
    if ((done_ - warm_up_) % (updates_ / kParts) == 0) marks_.push_back(at);
    if (is_over()) end_ = sum_of(accounts);
  }
  void stale(std::uint64_t versions) {
    if (is_open()) staleness_.add(versions);
  }

  // Computes rates and staleness of the counted updates. Called when all of them were counted.
  TimingResult result() const {
    TimingResult result{.updates = updates_,
                        .staleness_mean = staleness_.mean(),
                        .staleness_max = static_cast<std::int64_t>(staleness_.max())};
    const double seconds = seconds_of(marks_.back() - marks_.front());
    if (seconds > 0.0) result.updates_per_second = static_cast<double>(updates_) / seconds;
    std::vector<double> lengths;
    for (std::size_t i = 1; i < marks_.size(); ++i) {
      lengths.push_back(seconds_of(marks_[i] - marks_[i - 1]));
    }
    result.relative_error = relative_error(lengths);
    const double all = seconds_of(end_.all() - begin_.all());
    if (all > 0.0) {
      result.compute_share = seconds_of(end_.compute - begin_.compute) / all;
      result.communication_share = seconds_of(end_.communication - begin_.communication) / all;
      result.peers_share = seconds_of(end_.peers - begin_.peers) / all;
      result.server_share = seconds_of(end_.servers - begin_.servers) / all;
    }
    return result;
  }

 private:
  const std::int64_t warm_up_;
  const std::int64_t updates_;  // updates to count, a multiple of kParts
  std::int64_t done_ = 0;
  std::vector<VirtualTime> marks_;  // begin and end times of the kParts parts
  WorkerAccount begin_;             // sum of the accounts at the window's beginning
  WorkerAccount end_;
  ps::StalenessHistogram staleness_;
};

constexpr std::uint32_t kIncarnation = 1;  // no worker is restarted

struct TimedWorker {
  std::uint64_t sequence = 0;     // number of the worker's last push
  VirtualTime begun{0};           // when the worker began its round, which may be one step
  VirtualTime first{0};           // how long the first step of the round computes
  VirtualTime compute{0};         // how long all steps of the round compute
  VirtualTime computed{0};        // when the worker had the gradient
  bool is_computing = false;      // has begun a step and not completed its gradient
  BucketId values_missing = 0;    // buckets whose values have not arrived
  std::vector<BucketTrip> trips;  // by bucket
};

// A bucket without its values, which decides about pushes and answers as in a real job.
struct TimedBucket {
  ps::SharedBucket shared;
  std::vector<std::uint64_t> read;  // version that each worker has read
  VirtualTime updated{0};           // when the last summed update ends
};

struct TimedEvent {
  enum class Kind : std::uint8_t {
    kCompleted,  // the gradients of a bucket are complete
    kPushed,     // they have arrived at the server
    kServed,     // the server has had the time to apply them
    kReleased,   // the server has applied all gradients of a summed update, and answers
    kAnswered,   // the values have arrived at the worker
  };
  Kind kind = Kind::kCompleted;
  int worker = 0;
  BucketId bucket = 0;
};

// Simulates the timing of async, ssp, and sync with backup workers.
class AsynchronousTiming {
 public:
  AsynchronousTiming(const TimingOptions& options, TimingWindow& window)
      : buckets_(options.buckets),
        steps_per_exchange_(options.steps_per_exchange),
        bytes_per_second_(options.faults.server_bytes_per_second),
        is_summed_(options.consistency.consistency == ps::Consistency::kSync),
        collected_(static_cast<std::uint64_t>(ps::gradients_per_update(options.consistency))),
        window_(window),
        network_(options.faults.link, options.workers, buckets_.servers()),
        delays_(options.faults, options.seed),
        server_free_(static_cast<std::size_t>(buckets_.servers())),
        workers_(static_cast<std::size_t>(options.workers)),
        accounts_(workers_.size()) {
    for (TimedWorker& worker : workers_) worker.trips.resize(buckets_.bytes.size());
    for (BucketId b = 0; b < buckets_.count(); ++b) {
      if (buckets_.owner_of(b) == 0) last_of_server_0_ = b;
      TimedBucket& bucket = timed_.emplace_back(
          TimedBucket{.shared = {0, 1, ps::ConsistencyRule(options.consistency), staleness_},
                      .read = std::vector<std::uint64_t>(workers_.size(), 1)});
      for (int w = 0; w < options.workers; ++w) bucket.shared.join(w, kIncarnation, 0, 0);
    }
  }

  void run() {
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w) begin(w);
    while (!window_.is_over()) {
      check(!queue_.empty(), "a simulated job does not end");
      on_event(queue_.take());
    }
  }

 private:
  VirtualTime now() const noexcept { return queue_.now(); }
  TimedWorker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  BucketTrip& trip(int w, BucketId b) { return worker(w).trips[static_cast<std::size_t>(b)]; }
  WorkerAccount& account(int w) { return accounts_[static_cast<std::size_t>(w)]; }

  void on_event(const TimedEvent& event) {
    using Kind = TimedEvent::Kind;
    if (event.kind == Kind::kCompleted) return push(event.worker, event.bucket);
    if (event.kind == Kind::kPushed) return pushed(event.worker, event.bucket);
    if (event.kind == Kind::kServed) return apply(event.worker, event.bucket);
    if (event.kind == Kind::kReleased) return send_values(event.worker, event.bucket);
    answered(event.worker, event.bucket);
  }

  // Plans an event, or handles it at once if it is due now.
  void plan_event(VirtualTime at, const TimedEvent& event) {
    if (at == now()) return on_event(event);
    queue_.add(at, event.worker, event);
  }

  void begin(int w) {
    TimedWorker& of = worker(w);
    of.is_computing = true;
    of.begun = now();
    of.compute = VirtualTime(0);
    for (std::int64_t s = 1; s <= steps_per_exchange_; ++s) {
      of.compute += delays_.take(w, account(w).steps + s, now() + of.compute);
      if (s == 1) of.first = of.compute;
    }
    if (of.values_missing == 0) compute(w);
  }

  void compute(int w) {
    TimedWorker& of = worker(w);
    // Only the first step of a round waits for values.
    const StepStart start = start_of_step(buckets_, of.trips, of.begun, of.first);
    add_wait(account(w), trip(w, start.last), of.begun, start.at);
    for (BucketId b = 0; b < buckets_.count(); ++b) {
      queue_.add(start.at + buckets_.completion(b, of.compute), w,
                 {TimedEvent::Kind::kCompleted, w, b});
    }
  }

  void push(int w, BucketId b) {
    TimedWorker& of = worker(w);
    if (b == 0) {
      ++of.sequence;
      of.values_missing = buckets_.count();
    }
    if (b == buckets_.first_used()) {  // the last bucket of the round
      account(w).steps += steps_per_exchange_;
      account(w).compute += of.compute;
      of.computed = now();
      of.is_computing = false;
    }
    plan_event(network_.up(now(), w, buckets_.owner_of(b), buckets_.bytes_of(b)),
               {TimedEvent::Kind::kPushed, w, b});
  }

  // A server that sums waits for all gradients of an update. Any other server applies gradients one
  // by one, in the order of their arrival.
  void pushed(int w, BucketId b) {
    trip(w, b).sent = now();
    if (is_summed_) return apply(w, b);
    plan_event(occupy(b, 1), {TimedEvent::Kind::kServed, w, b});
  }

  // Adds an update from this many gradients to the server's work. Returns when it is done.
  VirtualTime occupy(BucketId b, std::int64_t gradients) {
    VirtualTime& free = server_free_[static_cast<std::size_t>(buckets_.owner_of(b))];
    free = std::max(free, now()) + update_time(bytes_per_second_, buckets_.bytes_of(b), gradients);
    return free;
  }

  void apply(int w, BucketId b) {
    using Kind = ps::ShardEvent::Kind;
    TimedBucket& to = timed_[static_cast<std::size_t>(b)];
    trip(w, b).on_server = now() - trip(w, b).sent;
    to.shared.push({.id = {w, kIncarnation, worker(w).sequence},
                    .version = to.read[static_cast<std::size_t>(w)],
                    .gradient = {},
                    .values = std::span(&value_, 1)});
    events_.clear();
    while (const auto part = to.shared.claim(1)) to.shared.finish(*part, events_);
    std::int64_t applied = 0;
    bool is_collected = false;  // whether the gradients of an update are complete
    for (const ps::ShardEvent& event : events_) {
      if (event.kind == Kind::kApplied) {
        ++applied;
        is_collected = (event.version - 1) % collected_ == 0;
        window_.stale(event.staleness);
      } else if (event.kind == Kind::kAnswered) {
        to.read[static_cast<std::size_t>(event.worker)] = event.version;
      }
    }
    if (is_collected && b == last_of_server_0_) window_.update(now(), accounts_);
    if (is_summed_ && applied > 0) to.updated = occupy(b, applied);
    const VirtualTime done = std::max(to.updated, now());
    for (const ps::ShardEvent& event : events_) {
      if (event.kind != Kind::kAnswered) continue;
      if (is_summed_) trip(event.worker, b).on_server = done - now();
      plan_event(done, {TimedEvent::Kind::kReleased, event.worker, b});
    }
  }

  void send_values(int w, BucketId b) {
    trip(w, b).answered = now();
    plan_event(network_.down(now(), buckets_.owner_of(b), w, buckets_.bytes_of(b)),
               {TimedEvent::Kind::kAnswered, w, b});
  }

  void answered(int w, BucketId b) {
    TimedWorker& of = worker(w);
    trip(w, b).arrived = now();
    --of.values_missing;
    if (b == buckets_.first_used()) {
      add_wait(account(w), trip(w, b), of.computed, now());
      return begin(w);
    }
    if (of.values_missing == 0 && of.is_computing) compute(w);
  }

  const TimedBuckets& buckets_;
  const std::int64_t steps_per_exchange_;
  const double bytes_per_second_;
  const bool is_summed_;
  const std::uint64_t collected_;  // gradients that the servers collect for an update of the values
  TimingWindow& window_;
  Network network_;
  ComputeDelays delays_;
  ps::StalenessCounts staleness_;  // of the buckets; the window has its own, of its part of the job
  float value_ = 0.0F;             // stands for the memory of the values that a push asks for
  std::vector<VirtualTime> server_free_;  // when each server has done the updates that it has begun
  BucketId last_of_server_0_ = 0;         // an update is counted when this bucket is applied
  std::vector<TimedBucket> timed_;
  std::vector<TimedWorker> workers_;
  std::vector<WorkerAccount> accounts_;
  EventQueue<TimedEvent> queue_;
  std::vector<ps::ShardEvent> events_;  // of the push that apply() handles
};

// In one round, each worker computes one gradient or displacement.
constexpr std::int64_t kFewestRounds = 10;
constexpr std::int64_t kWarmUpRounds = 4;
constexpr std::int64_t kMostWarmUpRounds = 100;

void check_options(const TimingOptions& options) {
  ps::check_consistency(options.consistency);
  check(!options.buckets.bytes.empty(), "a job has at least one bucket");
  const int backups = options.consistency.backup_workers;
  if (backups >= options.workers) {
    throw UsageError(
        fmt::format("backup:{}: expected fewer than the {} workers", backups, options.workers));
  }
  const std::int64_t collected = ps::gradients_per_update(options.consistency);
  if (collected > options.gradients) {
    throw UsageError(fmt::format("rennala:{}: expected at most the {} gradients of a simulation",
                                 collected, options.gradients));
  }
}

TimingResult simulate_synchronous(const TimingOptions& options, std::int64_t rounds) {
  StepTimes times({.strategy = options.strategy,
                   .workers = options.workers,
                   .buckets = options.buckets,
                   .steps_per_exchange = options.steps_per_exchange,
                   .pipeline = options.pipeline},
                  options.faults, options.seed);
  const std::int64_t steps = options.steps_per_exchange;
  TimingWindow window(kWarmUpRounds, rounds);
  for (std::int64_t step = steps; !window.is_over(); step += steps) {
    const VirtualTime end = times.step(step, options.buckets.bytes);
    window.update(end, times.accounts());
  }
  TimingResult result = window.result();
  result.gradients_per_update = options.pipeline
                                    ? static_cast<double>(options.pipeline->micro_batches)
                                    : static_cast<double>(options.workers * steps);
  return result;
}

// Workers drift apart like random walks until the bound of ssp stops them, which takes about the
// square of the bound in rounds.
std::int64_t warm_up_rounds(const TimingOptions& options) {
  const std::int64_t bound = options.consistency.consistency == ps::Consistency::kSsp
                                 ? options.consistency.max_staleness
                                 : 0;
  return std::min(kWarmUpRounds + bound * bound, kMostWarmUpRounds);
}

// Returns a lower bound for the part of the gradients that a rule with a number N applies to the
// values: after N applied gradients, every other worker may have one that is dropped.
double applied_share(const TimingOptions& options) {
  if (!ps::has_number(options.consistency.staleness_rule)) return 1.0;
  const auto number = static_cast<double>(options.consistency.rule_number);
  return number / (number + static_cast<double>(options.workers - 1));
}

}  // namespace

TimingResult simulate_timing(const TimingOptions& options) {
  check_options(options);
  const std::int64_t steps = options.steps_per_exchange;
  const std::int64_t of_round = steps * options.workers;
  const std::int64_t rounds =
      std::max(kFewestRounds, (options.gradients + of_round - 1) / of_round);
  if (is_synchronous(options.consistency)) return simulate_synchronous(options, rounds);
  const bool is_summed = options.consistency.consistency == ps::Consistency::kSync;
  const std::int64_t collected = ps::gradients_per_update(options.consistency);
  const auto updates_in = [&](std::int64_t number) {
    if (is_summed) return number;
    const auto gradients = static_cast<double>(number * options.workers) * applied_share(options);
    return static_cast<std::int64_t>(std::ceil(gradients / static_cast<double>(collected)));
  };
  TimingWindow window(updates_in(warm_up_rounds(options)), updates_in(rounds));
  AsynchronousTiming(options, window).run();
  TimingResult result = window.result();
  result.gradients_per_update = static_cast<double>(
      steps * (is_summed ? options.workers - options.consistency.backup_workers : collected));
  return result;
}

}  // namespace syncopate::bench
