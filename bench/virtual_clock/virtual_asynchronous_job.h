// An asynchronous virtual job: async, ssp, and sync with backup workers, with any rule for stale
// gradients. Each worker leases a batch, computes the gradient with the values that it has
// received, pushes each bucket of the gradient as soon as it is complete, and receives the bucket's
// new values when the consistency rule of the shard allows it. A worker begins its next step when
// it has the values of its first layers. With --push displacement, a worker leases and trains batch
// after batch with values of its own, and pushes all buckets of its displacement at the end of a
// round. Ledger, shard, rule and running statistics are the code of a real job. Called by
// virtual_training.cc.
//
// The device computes a gradient when the first bucket of it is complete. The gradient depends only
// on the values of the worker, so one device can serve all workers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/virtual_clock/event_queue.h"
#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/outgoing_gradient.h"
#include "bench/virtual_clock/time_model.h"
#include "bench/virtual_clock/timed_buckets.h"
#include "bench/virtual_clock/virtual_device.h"
#include "bench/virtual_clock/virtual_plan.h"
#include "models/base/errors.h"
#include "ps/coordinator/ledger.h"
#include "ps/shard/running_statistics.h"
#include "ps/shard/shard.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/snapshot.h"
#include "worker/input/batches/batch_reader.h"

namespace syncopate::bench {

// The state of one virtual worker.
struct VirtualWorker {
  std::uint32_t incarnation = 0;  // number of times that the worker was started
  bool is_alive = false;
  bool is_resting = false;     // true: the shard does not wait for this worker
  std::uint64_t sequence = 0;  // the number of the worker's last push
  std::uint64_t done = 0;      // the number of the last push that the shard applied or dropped

  std::vector<float> values;            // values as received, [arena total]
  std::vector<std::uint64_t> versions;  // versions of `values`, by bucket
  std::vector<float> state;             // running statistics of the worker
  std::optional<OutgoingGradient> gradient;

  // This field and the fields below describe the current step, for which the worker computes the
  // gradient or exchanges data with the servers.
  std::optional<ps::SampleRange> lease;
  double learning_rate = 0.0;
  struct TrainedBatch {
    ps::SampleRange batch;
    Scores scores;
  };
  // With displacements: the steps of the current round, the values with which it began, and the
  // worker's own optimizer with the number of its updates.
  std::vector<TrainedBatch> round;
  std::vector<float> start;
  std::optional<OptimizerSlots> inner;
  std::int64_t updates = 0;
  // The batches and the learning rate of the last push. A worker may begin its next step before all
  // servers have applied the push.
  std::vector<TrainedBatch> pushed;
  double pushed_rate = 0.0;
  std::int64_t pushed_samples() const noexcept {
    std::int64_t samples = 0;
    for (const TrainedBatch& trained : pushed) samples += trained.scores.num_samples;
    return samples;
  }
  // Whether the push that ends the step waits in the shard. The shard applies or drops it even if
  // the worker dies before that.
  bool is_in_shard = false;
  VirtualTime begun{0};    // when the worker began the step
  VirtualTime compute{0};  // how long the worker computes in the step
  // The time at which the worker had computed the gradient or, before its first step, had asked for
  // values.
  VirtualTime computed{0};
  std::vector<BucketTrip> trips;  // by bucket
  std::vector<bool> has_values;   // by bucket: whether the values of the next step have arrived
  BucketId values_missing = 0;    // number of buckets without new values
  std::vector<bool> is_queued;    // by bucket: whether its gradients wait for a busy server
  ps::DropCounter drops;          // of all steps of the worker

  VirtualTime idle_since{0};  // since when the worker has been waiting for a batch
  enum class Doing : std::uint8_t { kNothing, kComputing, kExchanging, kIdle };
  Doing doing = Doing::kNothing;
};

// Trains one asynchronous job under the virtual clock. One thread only.
class VirtualAsynchronousJob {
 public:
  // Prepares the job; run() trains it. All arguments must outlive the object.
  VirtualAsynchronousJob(const VirtualRun& run, const VirtualPlan& plan, VirtualDevice& device,
                         MetricsWriter& metrics, const std::function<void(double)>& progress);

  // Trains the whole job. Called once. Throws what train_virtually throws.
  VirtualOutcome run();

 private:
  struct JobEvent {
    enum class Kind : std::uint8_t {
      kCompleted,  // the gradients of a bucket are complete
      kStepped,    // a step of a round has ended
      kPushed,     // they have arrived at the server
      kServed,     // the server has had the time to apply them
      kReleased,   // the server has applied all gradients of a summed update, and answers
      kAnswered,   // the values of a bucket have arrived at the worker
      kDeadline,   // a shard's update is due, although no push has arrived
      kKill,
      kJoin,
    };
    Kind kind = Kind::kCompleted;
    int worker = 0;
    std::uint32_t incarnation = 0;            // unused for kKill, kJoin and kDeadline
    BucketId bucket = 0;                      // unused for kKill, kJoin and kDeadline
    std::optional<double> restart_seconds{};  // for kKill: time from the kill; nullopt: no restart
  };

  VirtualWorker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  WorkerAccount& account(int w) { return accounts_[static_cast<std::size_t>(w)]; }
  VirtualTime now() const noexcept { return queue_.now(); }
  bool is_time_up() const noexcept { return plan_.is_time_up(now()); }
  // Returns whether no further batch will be leased.
  bool is_all_handed_out() const noexcept { return ledger_.all_handed_out() || is_time_up(); }
  bool is_over() const noexcept {
    return ledger_.all_trained() || (is_time_up() && !ledger_.is_any_held());
  }

  void schedule(const FaultInjection& faults);
  void on_event(const JobEvent& event);
  void kill(int w, std::optional<double> restart_seconds);
  // Gives back all batches of a worker that has died.
  void lose_batches(int w);
  // Lets the worker wait for a batch if it has ended its step and has the values of its first
  // layers.
  void wait_for_batch(int w);
  void begin(int w, const ps::SampleRange& lease);
  // Plans the pushes of a step, when all values have arrived.
  void compute(int w);
  // Computes the gradient of the worker's batch with the worker's values.
  Scores compute_gradient(VirtualWorker& of);
  // Computes the gradient that the worker pushes.
  void train(int w);
  // Ends a step of a round: the worker updates its own values.
  void end_step_of_round(int w);
  // Pushes the displacement of the round so far.
  void push_round(int w);
  // Hands over what the device's gradients hold, as the next push of the worker.
  void take_push(VirtualWorker& of, std::vector<VirtualWorker::TrainedBatch> batches, double rate);
  // Pushes the rounds of workers that wait for a batch when all are leased, so that no two of them
  // wait for each other.
  bool push_incomplete_rounds();
  // Sends a bucket of the worker's push.
  void send(int w, BucketId bucket);
  bool has_rounds() const noexcept { return pushes_displacements(plan_.strategy.local); }
  // Runs the shard until it has nothing to do, and leases batches to waiting workers.
  void process_due_work();
  // Plans the time at which the shard's next update is due.
  void plan_deadline();
  void end_step(const ps::ShardEvent& event);
  bool rest_idle_workers();

  void count_batch(const Scores& scores);
  bool evaluation_due() const;
  Evaluation evaluate();
  void finish_accounts();
  JobLines::Moment moment() const;
  std::vector<WorkerStaleness> staleness() const;
  std::string describe_standstill() const;

  void join(int w);
  void push(int w, BucketId bucket);
  void pushed(int w, BucketId bucket);
  void served(int w, BucketId bucket);
  ps::Consistency consistency() const noexcept { return plan_.strategy.consistency.consistency; }
  bool is_summed() const noexcept { return consistency() == ps::Consistency::kSync; }
  // Whether an update of the shard takes the pushes of several workers.
  bool merges_pushes() const noexcept {
    return is_summed() || consistency() == ps::Consistency::kQuorum;
  }
  // Adds an update of a bucket from gradients of `bytes` bytes to its server's work. Returns when
  // it is done.
  VirtualTime occupy(BucketId bucket, std::int64_t bytes);
  void on_shard_events(BucketId bucket);
  void on_shard_event(const ps::ShardEvent& event);
  // Answers a worker at the time `updated`, when the server has updated the bucket.
  void answer(const ps::ShardEvent& event, VirtualTime updated);
  void send_values(int w, BucketId bucket);
  void answered(int w, BucketId bucket);
  // Plans an event for this incarnation of the worker. Handles the event at once if it is due now.
  void plan_event(VirtualTime at, JobEvent::Kind kind, int w, BucketId bucket);
  std::span<float> values_of(VirtualWorker& of, BucketId bucket) const {
    return part_of(std::span(of.values), shard_.buckets()[static_cast<std::size_t>(bucket)]);
  }

  const VirtualPlan& plan_;
  const std::int64_t batches_per_step_;  // gradients of an update that are applied, not dropped
  const TimedBuckets& buckets_;
  const double server_bytes_per_second_;
  VirtualDevice& device_;
  ps::Shard shard_;
  ps::Ledger ledger_;
  const BatchReader reader_;
  BatchSlot slot_;
  ps::RunningStatistics statistics_;
  Network network_;
  std::vector<VirtualTime> server_free_;  // when each server has done the updates that it has begun
  std::vector<VirtualTime> updated_;      // when the last summed update of each bucket ends
  ComputeDelays delays_;
  JobLines lines_;
  EventQueue<JobEvent> queue_;
  std::optional<VirtualTime> planned_deadline_;
  std::vector<VirtualWorker> workers_;
  std::vector<WorkerAccount> accounts_;
  std::deque<int> waiting_;  // workers that wait for a batch, in order of arrival
  std::vector<ps::ShardEvent> events_;
  ps::StalenessHistogram staleness_;  // staleness of all applied gradients
  BucketId last_of_server_0_ = 0;     // a step ends when this bucket is applied or dropped
  std::int64_t epoch_ = -1;           // number of the last epoch that has begun
  double learning_rate_ = 0.0;
  VirtualTime end_{0};  // when the last update ended
  std::string last_kill_;
};

}  // namespace syncopate::bench
