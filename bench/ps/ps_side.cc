#include "bench/ps/ps_side.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "bench/harness/rank_group.h"
#include "models/base/errors.h"
#include "ps/net/connection.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// The alarm ends a rank that hangs. Its time is shorter than the peer's answer timeout.
constexpr unsigned kLongestCommandSeconds = 240;
constexpr std::chrono::seconds kPatience(120);
// The last element of a rank's row counts its completed commands; a negative number means that the
// rank failed. The elements before it hold seconds.
constexpr std::size_t kDone = RankGroup::kRowLength - 1;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Side {
 public:
  Side(const PsJobOptions& job, RankGroup& group) : job_(job), group_(group) {}

  // Returns the seconds of every worker's exchanges on rank 0; empty on the other ranks.
  std::vector<double> run(const ExchangeCommand& asked) {
    begin(asked.shape);
    if (!is_worker()) return wait_for_workers({});
    worker_->exchange();  // One exchange wakes sleeping threads and touches memory.
    const std::span<double> mine = group_.row(group_.rank());
    for (int i = 0; i < asked.exchanges; ++i) {
      const Clock::time_point start = Clock::now();
      worker_->exchange();
      mine[static_cast<std::size_t>(i)] =
          std::chrono::duration<double>(Clock::now() - start).count();
    }
    exchanges_ += asked.exchanges + 1;
    std::vector<double> seconds = wait_for_workers(asked);
    if (group_.rank() == 0) worker_->require_values(exchanges_);
    return seconds;
  }

  // Returns the CPU seconds of every server on rank 0; empty on the other ranks.
  std::vector<double> idle(int seconds) {
    if (!shape_) begin({.bytes = std::size_t{1} << 20});
    const double before = cpu_seconds();
    ::poll(nullptr, 0, 1000 * seconds);
    if (!is_worker()) group_.row(group_.rank())[0] = cpu_seconds() - before;
    group_.barrier(Deadline::after(kPatience));
    std::vector<double> all;
    for (int rank = job_.workers; group_.rank() == 0 && rank < group_.size(); ++rank) {
      all.push_back(group_.row(rank)[0]);
    }
    return all;
  }

  void end() {
    if (worker_ != nullptr) worker_->end();
    worker_.reset();
    if (server_ != nullptr) server_->wait();
    server_.reset();
  }

  void fail() {
    done_mark().store(-1.0);
    group_.fail();
  }

 private:
  bool is_worker() const noexcept { return group_.rank() < job_.workers; }

  void begin(const ExchangeShape& shape) {
    if (shape_ != shape) {
      end();
      meet(shape);
      shape_ = shape;
    }
    group_.barrier(Deadline::after(kPatience));
  }

  // Server 0 publishes its port in its row, because only rank 0 may call share() with a text.
  void meet(const ExchangeShape& shape) {
    const int first_server = job_.workers;
    Endpoint rendezvous{"127.0.0.1", 0};
    FileDescriptor listening;
    if (group_.rank() == first_server) {
      Listener listener(rendezvous);
      group_.row(first_server)[0] = listener.port();
      listening = listener.release();
    }
    group_.barrier(Deadline::after(kPatience));
    rendezvous.port = static_cast<std::uint16_t>(group_.row(first_server)[0]);
    exchanges_ = 0;
    if (is_worker()) {
      worker_ = std::make_unique<PsJobWorker>(job_, shape, group_.rank(), rendezvous);
    } else {
      server_ = std::make_unique<PsJobServer>(job_, group_.rank() - first_server, rendezvous,
                                              std::move(listening));
    }
  }

  std::atomic_ref<double> mark_of(int rank) {
    return std::atomic_ref<double>(group_.row(rank)[kDone]);
  }
  std::atomic_ref<double> done_mark() { return mark_of(group_.rank()); }

  // All ranks but rank 0 sleep here, because a spinning barrier would take a core from workers that
  // still exchange.
  std::vector<double> wait_for_workers(const ExchangeCommand& asked) {
    ++runs_;
    done_mark().store(static_cast<double>(runs_));
    std::vector<double> seconds;
    if (group_.rank() != 0) {
      group_.share("");
      return seconds;
    }
    const Deadline deadline = Deadline::after(kPatience);
    for (int rank = 0; rank < job_.workers; ++rank) {
      while (mark_of(rank).load() != static_cast<double>(runs_)) {
        if (mark_of(rank).load() < 0.0 || deadline.passed()) {
          throw PeerError("worker " + std::to_string(rank) + " did not come to the end of a run");
        }
        ::poll(nullptr, 0, 1);
      }
      const std::span<const double> row = group_.row(rank);
      seconds.insert(seconds.end(), row.begin(), row.begin() + asked.exchanges);
    }
    group_.share("done");
    return seconds;
  }

  const PsJobOptions job_;
  RankGroup& group_;
  std::optional<ExchangeShape> shape_;
  std::unique_ptr<PsJobWorker> worker_;
  std::unique_ptr<PsJobServer> server_;
  std::int64_t exchanges_ = 0;  // The number of each worker's exchanges in the current job.
  std::int64_t runs_ = 0;
};

void serve(Side& side, RankGroup& group) {
  while (const std::optional<std::string> command = group.next_command()) {
    if (*command == "quit") break;
    ::alarm(kLongestCommandSeconds);
    std::vector<double> seconds;
    int idle_seconds = 0;
    std::string verb;
    std::istringstream words(*command);
    if (words >> verb >> idle_seconds && verb == "idle" && idle_seconds > 0) {
      seconds = side.idle(idle_seconds);
    } else {
      seconds = side.run(parse_exchange_command(*command));
    }
    ::alarm(0);
    if (group.rank() != 0) continue;
    std::cout << json{{"event", "steps"}, {"seconds", seconds}}.dump() << std::endl;
  }
  side.end();
}

}  // namespace

std::vector<std::string> ps_rank_arguments(const PsJobOptions& job) {
  return {std::string(kPsRank),
          "--workers",
          std::to_string(job.workers),
          "--servers",
          std::to_string(job.servers),
          "--transport",
          job.tcp ? "tcp" : "shm",
          "--optimizer",
          job.optimizer,
          "--consistency",
          job.consistency};
}

void run_ps_rank(const PsRankOptions& options) {
  const PsJobOptions& job = options.job;
  const auto group =
      make_rank_group(options.rank, job.workers + job.servers, ps_rank_arguments(job));
  const std::string description = std::to_string(job.workers) + " workers, " +
                                  std::to_string(job.servers) + " servers, " + job.optimizer +
                                  ", " + job.consistency + ", " + (job.tcp ? "tcp" : "shm");
  if (group->rank() == 0) {
    std::cout
        << json{{"event", "ready"}, {"description", description}, {"pids", group->pids()}}.dump()
        << std::endl;
  }
  Side side(job, *group);
  try {
    serve(side, *group);
  } catch (...) {
    side.fail();
    throw;
  }
}

}  // namespace syncopate::bench
