// Hands out batches to workers and tracks the progress of the job. LeaseQueue owns the ledger of
// batches (ledger.h), the requests for batches that cannot be granted yet, and the sums of losses
// and metrics that status reports show.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ps/coordinator/job.h"
#include "ps/coordinator/job_snapshot.h"
#include "ps/coordinator/ledger.h"
#include "ps/coordinator/stop_kind.h"

namespace syncopate::ps {

// The part of the coordinator that hands out batches. Used by one thread at a time. Synchronous
// workers do not lease batches; in their jobs the ledger only counts steps.
class LeaseQueue {
 public:
  explicit LeaseQueue(Job& job) : job_(job) {}

  // Starts training at this position. Throws UsageError if the data has no such position.
  void begin(const RunPosition& start);
  bool has_begun() const noexcept { return ledger_.has_value(); }

  void request(int worker, int count);
  // Gives the batches that a lost worker held to other workers.
  void on_worker_lost(int worker);
  // Counts, in repeated_batches(), a batch that is trained again although the values contain a part
  // of its gradients. There is such a batch if the lost worker's last push on a server belongs to a
  // step that had not ended. Called when a server has removed a lost worker.
  void on_departed(const wire::WorkerLeftT& departed);
  std::int64_t repeated_batches() const noexcept { return repeated_batches_; }
  // Lets the worker keep only these batches. Other batches that were granted to the worker have not
  // reached it and are handed out again. Called when the worker has reconnected.
  void keep(int worker, std::span<const SampleRange> held);
  // Lets batches of workers that have not reconnected be handed out again. Called when the workers
  // of a restored job have had enough time to reconnect.
  void on_reconnect_timeout() { awaits_holders_ = false; }
  // Records that a worker's push was applied, which gave shard 0's last bucket this version.
  // Returns how many batches this adds to the trained batches. A gradient has one batch, and a
  // displacement has all batches of a round.
  std::int64_t on_push_applied(int worker, const wire::PushT& push, std::uint64_t version);
  void on_push_dropped(int worker, const wire::PushT& push);
  // Stops handing out batches. stopped_by() returns the kind of the first call.
  void stop(StopKind kind);
  std::optional<StopKind> stopped_by() const noexcept { return stopped_by_; }
  // Answers the workers' requests that can be answered, with batches or with the end of all
  // batches.
  void advance();

  // Returns whether all batches are trained, or the job is stopping and no worker holds a batch.
  bool is_finished() const noexcept;
  bool all_trained() const noexcept { return ledger_->all_trained(); }
  JobProgress progress() const { return as_of({}); }
  // Returns the number of batches trained in all epochs, including batches before the start of this
  // run.
  std::int64_t batches_trained() const;
  std::int64_t batches_per_epoch() const;
  // Returns the job's step before the last `batches` batches were trained.
  std::int64_t step_before(std::int64_t batches) const;

  void set_staleness(double mean, std::uint64_t max);
  wire::JobStatusT status() const;
  // Sets RunPosition::rules after an evaluation.
  void set_rules(std::vector<double> rules) { rules_ = std::move(rules); }

  // begin_snapshot() and end_snapshot() tell the queue when a snapshot is being made. Between these
  // calls, as_of(limits) returns the job's progress at the snapshot. limits[w] is the last push of
  // worker w that the snapshot includes.
  void begin_snapshot();
  void end_snapshot();
  JobProgress as_of(const std::map<WorkerId, std::uint64_t>& limits) const;
  // Like as_of(), but without the batches of gradients that the values do not contain yet, because
  // the servers still collect gradients for the next update (kRennala).
  JobProgress as_of_last_update(const std::map<WorkerId, std::uint64_t>& limits) const;
  // Writes the job's progress at a snapshot to `saved`. `limits`: see as_of().
  void save(const std::map<WorkerId, std::uint64_t>& limits, JobSnapshot& saved) const;
  void restore(const JobSnapshot& saved);

 private:
  struct Request {
    int worker = 0;
    int count = 0;
    bool knows_all_granted = false;  // the worker was told that it must wait for others
  };
  struct Sums {
    double loss = 0.0;
    double metric = 0.0;
    // The number of pushes in the values of shard 0: the highest version of a summand, minus 1.
    std::int64_t pushes = 0;
    void add(const Sums& more) {
      loss += more.loss;
      metric += more.metric;
      pushes = std::max(pushes, more.pushes);
    }
  };
  struct ReportedPush {
    int worker = 0;
    std::uint64_t sequence = 0;
    Sums sums;
  };
  // A collected gradient.
  struct Collected {
    // The next snapshot contains a gradient that was applied before the snapshot began, whatever
    // has become of its worker.
    static constexpr int kInEverySnapshot = -1;
    int worker = kInEverySnapshot;
    std::uint64_t sequence = 0;
    CollectedBatch batch;
  };

  struct LostWorker {
    std::uint32_t incarnation = 0;
    std::uint64_t last_push = 0;  // sequence of the push that ended the worker's last complete step
  };

  std::int64_t step_after(std::int64_t batches) const;
  JobProgress as_of(const std::map<WorkerId, std::uint64_t>& limits,
                    std::span<const SampleRange> untrained) const;
  // Returns the batches of the incomplete collection at a snapshot. The versions of shard 0 tell
  // which collections are complete, since shard 0 also applies pushes that do not count here.
  std::vector<CollectedBatch> collected_at(const std::map<WorkerId, std::uint64_t>& limits) const;
  // Returns the number of complete collections in values of this version.
  std::uint64_t collections_in(std::uint64_t version) const;
  void forget_complete_collections();
  bool count_step(int worker, std::uint64_t sequence);
  void count_bad(const wire::PushT& push, std::span<const SampleRange> batches);
  void grant(Request& request);
  void finish(const Request& request);
  // Tells waiting workers that all batches are granted. A worker that has not pushed the batches of
  // its round then does so: otherwise two such workers would wait for each other.
  void end_rounds();
  // Tells the servers (message Resting) which workers have no batch left to train, so that the
  // servers do not wait for pushes of these workers.
  void rest_idle_workers();
  void erase_answered_requests();
  // Returns whether a worker that has not reconnected since restore() may hold batches.
  bool awaits_holders() const;

  Job& job_;
  std::optional<Ledger> ledger_;
  std::int64_t start_step_ = 0;
  std::int64_t start_batches_of_step_ = 0;  // batches of the first step trained before a restore
  std::int64_t start_samples_ = 0;
  std::vector<double> rules_;  // RunPosition::rules after the last evaluation
  Sums sums_;
  std::map<std::int64_t, std::int64_t>
      bad_by_epoch_;  // sums of Push::num_bad since the start or restore()
  std::optional<StopKind> stopped_by_;
  std::deque<Request> requests_;    // requests of workers for batches, in order of arrival
  std::map<int, LostWorker> lost_;  // lost workers; their last step may be repeated
  std::int64_t repeated_batches_ = 0;
  bool awaits_holders_ = false;             // set by restore(), under kAsync
  bool is_snapshot_begun_ = false;          // between begin_snapshot() and end_snapshot()
  Sums sums_before_;                        // the sums when begin_snapshot() was called
  std::vector<ReportedPush> pushes_since_;  // pushes since begin_snapshot()
  // Under kRennala: the batches of the last collections, in the order of shard 0.
  std::deque<Collected> collected_;
  double staleness_mean_ = 0.0;
  std::uint64_t staleness_max_ = 0;
};

}  // namespace syncopate::ps
