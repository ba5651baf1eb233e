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
  std::uint64_t sequence = 0;  // number of the worker's last push
  VirtualTime begun{0};        // when the worker began to compute
  VirtualTime computed{0};     // when the worker had the gradient
  VirtualTime sent{0};         // when the gradient's last part arrived
  VirtualTime answered{0};     // when the answer's last part was sent
  VirtualTime on_server{0};    // how long the server of that part took to apply gradients
  int parts_missing = 0;       // servers that still owe their part of the answer
};

// A server's bucket without its values, which decides about pushes and answers as in a real job.
struct TimedServer {
  ps::SharedBucket bucket;
  std::vector<std::uint64_t> read;  // version that each worker has read
  VirtualTime free{0};              // when the server has done the updates that it has begun
};

struct TimedEvent {
  enum class Kind : std::uint8_t {
    kComputed,
    kPushed,    // a part of the gradient has arrived at a server
    kApplied,   // the server has applied this part
    kReleased,  // the server has applied all parts of a summed update, and answers
    kAnswered,
  };
  Kind kind = Kind::kComputed;
  int worker = 0;
  int server = 0;
};

// Simulates the timing of async, ssp, and sync with backup workers.
class AsynchronousTiming {
 public:
  AsynchronousTiming(const TimingOptions& options, TimingWindow& window)
      : bytes_(options.server_bytes),
        bytes_per_second_(options.server_bytes_per_second),
        is_summed_(options.consistency.consistency == ps::Consistency::kSync),
        window_(window),
        network_(options.faults.link, options.workers, static_cast<int>(bytes_.size())),
        delays_(options.faults, options.seed),
        workers_(static_cast<std::size_t>(options.workers)),
        accounts_(workers_.size()) {
    for (std::size_t s = 0; s < bytes_.size(); ++s) {
      TimedServer& server = servers_.emplace_back(
          TimedServer{.bucket = {0, 1, ps::ConsistencyRule(options.consistency), staleness_},
                      .read = std::vector<std::uint64_t>(workers_.size(), 1)});
      for (int w = 0; w < options.workers; ++w) server.bucket.join(w, kIncarnation, 0, 0);
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
  WorkerAccount& account(int w) { return accounts_[static_cast<std::size_t>(w)]; }
  TimedServer& server(int s) { return servers_[static_cast<std::size_t>(s)]; }
  int servers() const noexcept { return static_cast<int>(bytes_.size()); }
  std::int64_t bytes_to(int server) const { return bytes_[static_cast<std::size_t>(server)]; }

  void on_event(const TimedEvent& event) {
    using Kind = TimedEvent::Kind;
    if (event.kind == Kind::kComputed) return computed(event.worker);
    if (event.kind == Kind::kPushed) return pushed(event.worker, event.server);
    if (event.kind == Kind::kApplied) return apply(event.worker, event.server);
    if (event.kind == Kind::kReleased) return send_values(event.worker, event.server);
    answered(event.worker);
  }

  void begin(int w) {
    worker(w).begun = now();
    const VirtualTime time = delays_.take(w, account(w).steps + 1, now());
    queue_.add(now() + time, w, {.kind = TimedEvent::Kind::kComputed, .worker = w});
  }

  void computed(int w) {
    TimedWorker& of = worker(w);
    ++account(w).steps;
    account(w).compute += now() - of.begun;
    of.computed = of.sent = now();
    ++of.sequence;
    of.parts_missing = servers();
    for (int i = 0; i < servers(); ++i) {
      const int s = (w + i) % servers();  // each worker begins with another server
      const VirtualTime there = network_.up(now(), w, s, bytes_to(s));
      if (there == now()) {
        pushed(w, s);
      } else {
        queue_.add(there, w, {TimedEvent::Kind::kPushed, w, s});
      }
    }
  }

  // A server that sums waits for all gradients of an update. Any other server applies gradients one
  // by one, in the order of their arrival.
  void pushed(int w, int s) {
    worker(w).sent = now();
    if (is_summed_) return apply(w, s);
    const VirtualTime done = occupy(s, 1);
    if (done == now()) return apply(w, s);
    queue_.add(done, w, {TimedEvent::Kind::kApplied, w, s});
  }

  // Adds an update from this many gradients to the server's work. Returns when it is done.
  VirtualTime occupy(int s, std::int64_t gradients) {
    VirtualTime& free = server(s).free;
    free = std::max(free, now()) + update_time(bytes_per_second_, bytes_to(s), gradients);
    return free;
  }

  void apply(int w, int s) {
    using Kind = ps::ShardEvent::Kind;
    TimedServer& to = server(s);
    to.bucket.push({.id = {w, kIncarnation, worker(w).sequence},
                    .version = to.read[static_cast<std::size_t>(w)],
                    .gradient = {},
                    .values = std::span(&value_, 1)});
    events_.clear();
    while (const auto part = to.bucket.claim(1)) to.bucket.finish(*part, events_);
    std::int64_t applied = 0;
    for (const ps::ShardEvent& event : events_) {
      if (event.kind == Kind::kApplied) {
        ++applied;
        window_.stale(event.staleness);
      } else if (event.kind == Kind::kAnswered) {
        to.read[static_cast<std::size_t>(event.worker)] = event.version;
      }
    }
    if (applied > 0 && s == 0) window_.update(now(), accounts_);
    const VirtualTime done = is_summed_ ? occupy(s, applied) : now();
    if (!is_summed_) worker(w).on_server = now() - worker(w).sent;
    for (const ps::ShardEvent& event : events_) {
      if (event.kind != Kind::kAnswered) continue;
      if (is_summed_) worker(event.worker).on_server = done - now();
      if (done == now()) {
        send_values(event.worker, s);
      } else {
        queue_.add(done, event.worker, {TimedEvent::Kind::kReleased, event.worker, s});
      }
    }
  }

  void send_values(int w, int server) {
    worker(w).answered = now();
    const VirtualTime there = network_.down(now(), server, w, bytes_to(server));
    if (there == now()) return answered(w);
    queue_.add(there, w, {TimedEvent::Kind::kAnswered, w, server});
  }

  void answered(int w) {
    TimedWorker& of = worker(w);
    if (--of.parts_missing > 0) return;
    const VirtualTime waited = std::max(VirtualTime(0), of.answered - of.sent);
    const VirtualTime on_server = std::min(waited, of.on_server);
    account(w).servers += on_server;
    account(w).peers += waited - on_server;
    account(w).communication += now() - of.computed - waited;
    begin(w);
  }

  const std::vector<std::int64_t>& bytes_;
  const double bytes_per_second_;
  const bool is_summed_;
  TimingWindow& window_;
  Network network_;
  ComputeDelays delays_;
  ps::StalenessCounts staleness_;  // of the buckets; the window has its own, of its part of the job
  float value_ = 0.0F;             // stands for the memory of the values that a push asks for
  std::vector<TimedServer> servers_;
  std::vector<TimedWorker> workers_;
  std::vector<WorkerAccount> accounts_;
  EventQueue<TimedEvent> queue_;
  std::vector<ps::ShardEvent> events_;  // of the push that apply() handles
};

// In one round, each worker computes one gradient.
constexpr std::int64_t kFewestRounds = 10;
constexpr std::int64_t kWarmUpRounds = 4;
constexpr std::int64_t kMostWarmUpRounds = 100;

void check_options(const TimingOptions& options) {
  ps::check_consistency(options.consistency);
  check(!options.server_bytes.empty(), "server_bytes must not be empty");
  const int backups = options.consistency.backup_workers;
  if (backups >= options.workers) {
    throw UsageError(
        fmt::format("backup:{}: expected fewer than the {} workers", backups, options.workers));
  }
}

TimingResult simulate_synchronous(const TimingOptions& options, std::int64_t rounds) {
  StepTimes times({.strategy = options.strategy,
                   .workers = options.workers,
                   .value_bytes = options.server_bytes,
                   .has_servers = options.has_servers,
                   .server_bytes_per_second = options.server_bytes_per_second,
                   .pipeline = options.pipeline},
                  options.faults, options.seed);
  TimingWindow window(kWarmUpRounds, rounds);
  for (std::int64_t step = 1; !window.is_over(); ++step) {
    const VirtualTime end = times.step(step, options.server_bytes);
    window.update(end, times.accounts());
  }
  TimingResult result = window.result();
  result.gradients_per_update =
      options.pipeline ? options.pipeline->micro_batches : options.workers;
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

}  // namespace

TimingResult simulate_timing(const TimingOptions& options) {
  check_options(options);
  const std::int64_t rounds =
      std::max(kFewestRounds, (options.gradients + options.workers - 1) / options.workers);
  if (is_synchronous(options.consistency)) return simulate_synchronous(options, rounds);
  const bool is_summed = options.consistency.consistency == ps::Consistency::kSync;
  const std::int64_t updates_per_round = is_summed ? 1 : options.workers;
  TimingWindow window(warm_up_rounds(options) * updates_per_round, rounds * updates_per_round);
  AsynchronousTiming(options, window).run();
  TimingResult result = window.result();
  if (is_summed) result.gradients_per_update = options.workers - options.consistency.backup_workers;
  return result;
}

}  // namespace syncopate::bench
