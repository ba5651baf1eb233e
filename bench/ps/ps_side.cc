#include "bench/ps/ps_side.h"

#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "bench/harness/bench_commands.h"
#include "bench/harness/machine_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/peer.h"
#include "bench/harness/rank_group.h"
#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::seconds kSideTimeout(120);
// The last element of a rank's row counts its completed commands; a negative number means that the
// rank failed. The elements before it hold seconds.
constexpr std::size_t kDone = RankGroup::kRowLength - 1;

class Side {
 public:
  Side(const PsJobOptions& job, RankGroup& group) : job_(job), group_(group) {}

  // Returns the seconds of every worker's exchanges on rank 0; empty on the other ranks.
  std::vector<double> run(const ExchangeCommand& asked) {
    begin(asked.shape);
    if (!is_worker()) return wait_for_workers({});
    worker_->exchange();  // one uncounted exchange wakes threads, touches memory
    const std::span<double> mine = group_.row(group_.rank());
    for (int i = 0; i < asked.exchanges; ++i) {
      const auto start = SteadyClock::now();
      worker_->exchange();
      mine[static_cast<std::size_t>(i)] = seconds_since(start);
    }
    exchanges_ += asked.exchanges + 1;
    std::vector<double> seconds = wait_for_workers(asked);
    if (group_.rank() == 0) worker_->require_values(exchanges_);
    return seconds;
  }

  // Returns the CPU seconds of every server on rank 0; empty on the other ranks.
  std::vector<double> idle(int seconds) {
    if (!shape_) begin({.bytes = std::size_t{1} << 20});
    const double before = this_process_cpu_seconds();
    ::poll(nullptr, 0, 1000 * seconds);
    if (!is_worker()) group_.row(group_.rank())[0] = this_process_cpu_seconds() - before;
    group_.barrier(Deadline::after(kSideTimeout));
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
    group_.barrier(Deadline::after(kSideTimeout));
  }

  // Server 0 publishes its port in its row of the group's shared memory, because only rank 0 may
  // share a text.
  void meet(const ExchangeShape& shape) {
    const int first_server = job_.workers;
    Endpoint rendezvous{loopback_address(), 0};
    FileDescriptor listening;
    if (group_.rank() == first_server) {
      Listener listener(rendezvous);
      group_.row(first_server)[0] = listener.port();
      listening = listener.release();
    }
    group_.barrier(Deadline::after(kSideTimeout));
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
    const Deadline deadline = Deadline::after(kSideTimeout);
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
  std::int64_t exchanges_ = 0;  // number of each worker's exchanges in the current job
  std::int64_t runs_ = 0;
};

// Runs one rank of our side until the input ends. Throws PeerError, UsageError.
void run_ps_rank(int rank, const PsJobOptions& job) {
  const auto group = make_rank_group(rank, job.workers + job.servers, ps_rank_arguments(job));
  Side side(job, *group);
  try {
    serve_commands(
        *group,
        fmt::format("{} workers, {} servers, {}, {}, {}, compression {}", job.workers, job.servers,
                    job.optimizer, job.consistency, job.tcp ? "tcp" : "shm", job.compression),
        [&](const std::string& command) -> nlohmann::json {
          std::istringstream words(command);
          std::string verb;
          int seconds = 0;
          if (words >> verb >> seconds && verb == "idle" && seconds > 0) {
            return {{"seconds", side.idle(seconds)}};
          }
          return {{"seconds", side.run(parse_exchange_command(command))}};
        });
    side.end();
  } catch (...) {
    side.fail();
    throw;
  }
}

}  // namespace

std::vector<std::string> ps_rank_arguments(const PsJobOptions& job) {
  return split_command(fmt::format(
      "{} --workers {} --servers {} --transport {} --optimizer {} --compress {} --consistency {}",
      kPsRank, job.workers, job.servers, job.tcp ? "tcp" : "shm", job.optimizer, job.compression,
      job.consistency));
}

Command declare_ps_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto rank = std::make_shared<int>(0);
  const auto job = std::make_shared<PsJobOptions>();
  flags.add("--rank", rank.get(), "", {.least = 0});
  flags.add("--workers", &job->workers, "", {.least = 1});
  flags.add("--servers", &job->servers, "", {.least = 1});
  const auto transport = std::make_shared<std::string>("shm");
  flags.add("--transport", transport.get(), "", {.choices = {"shm", "tcp"}});
  flags.add("--optimizer", &job->optimizer, "");
  flags.add("--compress", &job->compression, "");
  flags.add("--consistency", &job->consistency, "");
  return [rank, job, transport] {
    job->tcp = *transport == "tcp";
    run_ps_rank(*rank, *job);
  };
}

}  // namespace syncopate::bench
