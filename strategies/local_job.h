// A job inside one process: its workers are replicas of this process, and the coordinator and the
// server are objects instead of processes. The rules are the same; there are no sockets. It has no
// threads. A caller that makes a piece of an update due carries it out, and callers that wait for
// values help. Used by central_storage_asynchronous.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/tensor/parameter_arena.h"
#include "ps/client/client.h"
#include "ps/coordinator/coordinator.h"
#include "strategies/local_server.h"

namespace syncopate {

// Thread-safe. Calls that name a worker come from that worker's thread, next_lease() from its
// reader's thread. Blocking calls have no timeout: a replica that fails aborts the job, which wakes
// them. In an aborted job every function that trains, waits or asks for work throws PeerError.
class LocalJob {
 public:
  // Makes the job's coordinator and server. Throws UsageError for a contradictory declaration.
  explicit LocalJob(ps::wire::DeclarationT declaration);

  int num_workers() const noexcept { return static_cast<int>(workers_.size()); }
  // Before begin() and after leave(), the caller may read and write the shard's values and slots.
  ps::Shard& shard() const noexcept { return server_.shard(); }

  // Starts training. Precondition: the shard holds the values that training starts from.
  // statistics: the running statistics. Throws UsageError if `start` does not fit the data set.
  void begin(const ps::RunPosition& start, std::span<const float> statistics);

  // Starts to copy the bucket's current values to `values`, [bucket] f32, which is in use until
  // wait_values() returns.
  void read(int worker, BucketId bucket, std::span<float> values);
  // Declares the step of the pushes that follow. step.state: the worker's running statistics.
  void begin_step(int worker, const ps::StepInfo& step);
  // Pushes one bucket's gradient; its next values are written to `values`. Both are in use until
  // wait_values() returns.
  void push(int worker, BucketId bucket, std::span<const float> gradient, std::span<float> values);
  // Returns when the values of the bucket's last read or push have arrived.
  void wait_values(int worker, BucketId bucket);

  std::optional<ps::SampleRange> next_lease(int worker);
  ps::wire::JobStatusT status() const;
  std::optional<ps::wire::AssignmentT> next_assignment(int worker);
  // Waits for the worker's next assignment. Returns nothing when the job is over.
  std::optional<ps::wire::AssignmentT> wait_assignment(int worker);
  // Returns a snapshot. Precondition: the worker has an open assignment with this snapshot.
  std::shared_ptr<const ps::ServedSnapshot> snapshot(std::uint64_t id) const;
  void done(int worker, std::uint64_t snapshot_id, const std::vector<double>& rules);
  void request_stop(int worker, ps::StopKind kind);
  // Ends the job: call once, when all workers have trained everything.
  void leave();
  // Wakes all workers that wait; they throw PeerError(reason).
  void abort(std::string_view reason) noexcept;

 private:
  struct Values {
    bool are_awaited = false;
    std::uint64_t version = 0;
  };
  // The state of one worker, as far as the coordinator and the shard have answered.
  struct Worker {
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;  // number of the worker's last step
    float learning_rate = 0.0F;
    std::vector<Values> buckets;
    std::deque<ps::SampleRange> leases;
    std::deque<ps::wire::AssignmentT> assignments;
    bool has_all_leases = false;
    bool is_finished = false;
  };
  // The message of a step's last push, kept until the push is applied.
  struct Step {
    ps::wire::PushT push;
    std::vector<float> statistics;
  };

  // The following functions require the mutex and notify no waiting thread.
  void start_job(const ps::RunPosition& start);
  void deliver(const ps::TaskId& from, const ps::wire::MessageT& message);
  void exchange_messages();
  void on_message(Worker& worker, const ps::wire::MessageT& message);
  void on_event(const ps::ShardEvent& event);
  void on_step_end(const ps::ShardEvent& event);
  void throw_if_failed() const;

  // The following functions must be called without the mutex.
  template <typename Body>
  void send(int worker, Body body);
  void rest(int worker);
  void work_on(BucketId bucket);
  void work_everywhere();
  bool work_once(BucketId bucket);
  bool take_events();
  void call_helpers();
  Worker& worker(int index) { return workers_[static_cast<std::size_t>(index)]; }

  mutable std::mutex mutex_;  // guards all members below, except for the shard
  mutable std::condition_variable changed_;
  LocalServer server_;
  ps::Coordinator coordinator_;
  std::vector<Worker> workers_;
  std::map<std::pair<int, std::uint64_t>, Step> open_steps_;  // by worker and sequence
  std::uint64_t help_requests_ = 0;
  std::optional<std::string> failure_;
  std::atomic<int> waiting_{0};  // threads in wait_values()
};

}  // namespace syncopate
