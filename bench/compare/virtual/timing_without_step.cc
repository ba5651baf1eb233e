#include "bench/compare/virtual/timing_without_step.h"

#include <algorithm>
#include <utility>

#include "bench/compare/virtual/network.h"
#include "bench/compare/virtual/service_times.h"
#include "models/base/errors.h"
#include "ps/shard/consistency_rule.h"

namespace syncopate::bench {
namespace {

constexpr std::uint32_t kIncarnation = 1;  // nobody is started again

struct TimedWorker {
  std::uint64_t sequence = 0;  // of its last push
  VirtualTime begun{0};        // computing
  VirtualTime computed{0};
  VirtualTime sent{0};      // the last part was there
  VirtualTime answered{0};  // the last part of the answer left
  int parts_missing = 0;    // of the answer
};

struct Happening {
  enum class Kind : std::uint8_t { kComputed, kPushed, kAnswered };
  Kind kind = Kind::kComputed;
  int worker = 0;
  int server = 0;
};

struct Push {
  int worker = 0;
  std::uint64_t sequence = 0;
};

// One server's bucket, as ps/shard/shared_bucket.h has it, without the values.
class TimedBucket {
 public:
  TimedBucket(const ps::ConsistencyOptions& consistency, int workers)
      : rule_(consistency),
        awaited_(consistency.consistency == ps::Consistency::kSync
                     ? static_cast<std::size_t>(workers - consistency.backup_workers)
                     : 1),
        is_bounded_(consistency.consistency == ps::Consistency::kSsp) {
    for (int w = 0; w < workers; ++w) rule_.join(w, kIncarnation, 0, 0);
    read_.assign(static_cast<std::size_t>(workers), version_);
  }

  struct Events {
    std::vector<std::uint64_t> applied;  // how stale each gradient was
    bool is_update = false;
    std::vector<int> answered;  // workers whose values may leave, in this order
  };
  void push(int worker, std::uint64_t sequence, Events& events) {
    events.applied.clear();
    events.answered.clear();
    events.is_update = false;
    const ps::PushRequest request{.id = {worker, kIncarnation, sequence},
                                  .version = read_[static_cast<std::size_t>(worker)],
                                  .gradient = {},
                                  .values = {}};
    check(rule_.accept(request.id), "a simulated push comes once");
    if (rule_.is_late(request, version_)) {
      rule_.advance(request.id);
      unanswered_.push_back({worker, sequence});
      return answer(true, events);
    }
    waiting_.push_back(request);
    // No update is due with fewer, and the rule would look at all of them each time.
    if (waiting_.size() >= awaited_) update(events);
  }

 private:
  void update(Events& events) {
    chosen_.clear();
    rule_.choose(waiting_, version_, chosen_);
    if (chosen_.empty()) return;
    pushes_.clear();
    for (const std::size_t i : chosen_) pushes_.push_back(waiting_[i]);
    check(pushes_.size() == waiting_.size(), "nobody pushes more than an update takes");
    waiting_.clear();
    std::ranges::sort(pushes_, {}, [](const ps::PushRequest& push) { return push.id.worker; });
    for (const ps::PushRequest& push : pushes_) {
      rule_.advance(push.id);
      events.applied.push_back(version_ - push.version);
      unanswered_.push_back({push.id.worker, push.id.sequence});
    }
    ++version_;
    events.is_update = true;
    answer(!is_bounded_ || slowest_has_gone_on(), events);
  }

  // Looks at all workers only when one of the slowest has pushed.
  bool slowest_has_gone_on() {
    const bool may_have = std::ranges::any_of(pushes_, [&](const ps::PushRequest& push) {
      return static_cast<std::int64_t>(push.id.sequence) == slowest_ + 1;
    });
    if (!may_have) return false;
    const std::int64_t before = std::exchange(slowest_, *rule_.standing(-1, 0, 0).slowest);
    return slowest_ != before;
  }

  // all: the slowest worker has gone on, so who was refused may be let go; else it is only the
  // pushes that were just applied that can.
  void answer(bool all, Events& events) {
    const std::size_t fresh = all ? 0 : known_refused_;
    const auto refused = std::remove_if(unanswered_.begin() + static_cast<std::ptrdiff_t>(fresh),
                                        unanswered_.end(), [&](const Push& push) {
                                          if (!rule_.may_read(push.worker, push.sequence))
                                            return false;
                                          read_[static_cast<std::size_t>(push.worker)] = version_;
                                          events.answered.push_back(push.worker);
                                          return true;
                                        });
    unanswered_.erase(refused, unanswered_.end());
    known_refused_ = unanswered_.size();
  }

  ps::ConsistencyRule rule_;
  const std::size_t awaited_;
  const bool is_bounded_;
  std::int64_t slowest_ = 0;  // clock, where it bounds the others
  std::uint64_t version_ = 1;
  std::vector<std::uint64_t> read_;  // versions, by worker
  std::vector<ps::PushRequest> waiting_;
  std::vector<std::size_t> chosen_;
  std::vector<ps::PushRequest> pushes_;
  std::vector<Push> unanswered_;   // applied or dropped, in this order
  std::size_t known_refused_ = 0;  // of them, from the first
};

class Simulation {
 public:
  Simulation(const TimingOptions& options, TimingWindow& window)
      : bytes_(options.server_bytes),
        window_(window),
        network_(options.trouble.link, options.workers, static_cast<int>(bytes_.size())),
        services_(options.trouble, options.seed),
        workers_(static_cast<std::size_t>(options.workers)),
        accounts_(workers_.size()) {
    for (std::size_t s = 0; s < bytes_.size(); ++s) {
      buckets_.emplace_back(options.consistency, options.workers);
    }
  }

  void run() {
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w) begin(w);
    while (!window_.is_over()) {
      check(!queue_.empty(), "a simulated job goes on for ever");
      happen(queue_.take());
    }
  }

 private:
  VirtualTime now() const noexcept { return queue_.now(); }
  TimedWorker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  WorkerAccount& account(int w) { return accounts_[static_cast<std::size_t>(w)]; }
  int servers() const noexcept { return static_cast<int>(bytes_.size()); }
  std::int64_t bytes_to(int server) const { return bytes_[static_cast<std::size_t>(server)]; }

  void happen(const Happening& event) {
    using Kind = Happening::Kind;
    if (event.kind == Kind::kComputed) return computed(event.worker);
    if (event.kind == Kind::kPushed) return pushed(event.worker, event.server);
    answered(event.worker);
  }

  void begin(int w) {
    worker(w).begun = now();
    const VirtualTime time = services_.take(w, account(w).steps + 1, now());
    queue_.add(now() + time, w, {.kind = Happening::Kind::kComputed, .worker = w});
  }

  void computed(int w) {
    TimedWorker& of = worker(w);
    ++account(w).steps;
    account(w).compute += now() - of.begun;
    of.computed = of.sent = now();
    ++of.sequence;
    of.parts_missing = servers();
    for (int i = 0; i < servers(); ++i) {
      const int s = (w + i) % servers();  // so that not all begin with the same server
      const VirtualTime there = network_.up(now(), w, s, bytes_to(s));
      if (there == now()) {
        pushed(w, s);
      } else {
        queue_.add(there, w, {Happening::Kind::kPushed, w, s});
      }
    }
  }

  void pushed(int w, int server) {
    worker(w).sent = now();
    buckets_[static_cast<std::size_t>(server)].push(w, worker(w).sequence, events_);
    for (const std::uint64_t staleness : events_.applied) window_.stale(staleness);
    if (events_.is_update && server == 0) window_.update(now(), accounts_);
    // Not events_ itself: who is answered at once may push at once.
    const std::vector<int> let_go = std::exchange(events_.answered, {});
    for (const int other : let_go) send_values(other, server);
  }

  void send_values(int w, int server) {
    worker(w).answered = now();
    const VirtualTime there = network_.down(now(), server, w, bytes_to(server));
    if (there == now()) return answered(w);
    queue_.add(there, w, {Happening::Kind::kAnswered, w, server});
  }

  void answered(int w) {
    TimedWorker& of = worker(w);
    if (--of.parts_missing > 0) return;
    const VirtualTime peers = std::max(VirtualTime(0), of.answered - of.sent);
    account(w).peers += peers;
    account(w).communication += now() - of.computed - peers;
    begin(w);
  }

  const std::vector<std::int64_t>& bytes_;
  TimingWindow& window_;
  Network network_;
  ServiceTimes services_;
  std::vector<TimedBucket> buckets_;  // by server
  std::vector<TimedWorker> workers_;
  std::vector<WorkerAccount> accounts_;
  EventQueue<Happening> queue_;
  TimedBucket::Events events_;
};

}  // namespace

void simulate_without_step(const TimingOptions& options, TimingWindow& window) {
  Simulation(options, window).run();
}

}  // namespace syncopate::bench
