// A virtual job whose workers keep no step: async, ssp, and sync with backup workers. Each leases a
// batch, computes the gradient of the values it was handed, pushes, and gets its next values as the
// shard's rule allows. A real job's coordinator, in virtual time: ledger, shard, rule and running
// statistics are its own. Called by train.cc.
//
// A gradient is computed when its service time has passed: it depends on the values read alone, so
// no worker needs a device of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/compare/virtual/device.h"
#include "bench/compare/virtual/event_queue.h"
#include "bench/compare/virtual/network.h"
#include "bench/compare/virtual/outcome.h"
#include "bench/compare/virtual/plan.h"
#include "bench/compare/virtual/service_times.h"
#include "bench/compare/virtual/virtual_worker.h"
#include "models/base/errors.h"
#include "ps/coordinator/ledger.h"
#include "ps/shard/running_statistics.h"
#include "ps/shard/shard.h"
#include "worker/input/batch_reader.h"

namespace syncopate::bench {

// One thread only.
class VirtualJob {
 public:
  // All arguments outlive it.
  VirtualJob(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device,
             MetricsWriter& metrics, const std::function<void(double)>& progress);

  // Once. Throws what train_virtually throws.
  VirtualOutcome run();

 private:
  struct Happening {
    enum class Kind : std::uint8_t { kComputed, kPushed, kAnswered, kKill, kJoin };
    Kind kind = Kind::kComputed;
    int worker = 0;
    std::uint32_t incarnation = 0;            // that it concerns; kKill, kJoin: any
    int server = 0;                           // kPushed, kAnswered
    std::optional<double> restart_seconds{};  // kKill
  };

  VirtualWorker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  WorkerAccount& account(int w) { return accounts_[static_cast<std::size_t>(w)]; }
  VirtualTime now() const noexcept { return queue_.now(); }
  bool is_time_up() const noexcept { return plan_.is_time_up(now()); }
  // Nothing is handed out any more.
  bool is_all_handed_out() const noexcept { return ledger_.all_handed_out() || is_time_up(); }
  bool is_over() const noexcept {
    return ledger_.all_trained() || (is_time_up() && !ledger_.is_any_held());
  }

  void schedule(const Trouble& trouble);
  void happen(const Happening& event);
  void kill(int w, std::optional<double> restart_seconds);
  // It has all its values, and waits for a batch.
  void wait_for_batch(int w);
  void begin(int w, const ps::SampleRange& lease);
  void computed(int w);
  // Does what is due on the shard, and hands out batches.
  void settle();
  void end_step(const ps::ShardEvent& event);
  bool rest_idle_workers();

  // virtual_job_progress.cc: how far it is, and what is said of it.
  void count_batch(const Scores& scores);
  bool evaluation_due() const;
  Evaluation evaluate();
  void finish_accounts();
  JobLines::Moment moment() const;
  std::vector<WorkerStaleness> staleness() const;
  std::string why_it_stands_still() const;

  // virtual_job_values.cc: the values, and what travels between servers and workers.
  void join(int w);
  void push(int w);
  void pushed(int w, int server);
  void hear(const ps::ShardEvent& event);
  void send_values(int w, int server);
  void answered(int w);
  std::span<float> part_of(VirtualWorker& of, std::size_t bucket) const;

  const VirtualPlan& plan_;
  const std::int64_t batches_per_step_;
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

}  // namespace syncopate::bench
