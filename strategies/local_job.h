// A job with coordinator and server inside one process. The workers are replicas of this process;
// the coordinator and the server are objects. All of these follow the same rules as the processes
// of a job with servers, but use no sockets. The job has no threads of its own. If a call makes
// work on an update due, the calling thread does this work, and threads that wait for values help.
// Used by central_storage_asynchronous.cc.
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
#include "ps/shard/stale_gradients.h"
#include "strategies/local_server.h"

namespace syncopate {

// The job that the replicas of this process share. Thread-safe. Each function with a parameter
// `worker` is called by the thread of this worker, except next_lease(), which the thread that reads
// the worker's data calls. Blocking calls have no timeout: a replica that fails aborts the job,
// which wakes all callers. After that, every function that trains, waits or requests work throws
// PeerError.
class LocalJob {
 public:
  // Makes the job's coordinator and server. Throws UsageError for a contradictory declaration.
  explicit LocalJob(ps::wire::DeclarationT declaration);

  int num_workers() const noexcept { return static_cast<int>(workers_.size()); }
  // Returns the shard with the job's variables. Before begin() and after leave(), the caller may
  // read and write the shard's values and slots.
  ps::Shard& shard() const noexcept { return server_.shard(); }

  // Starts training. Precondition: the shard holds the initial values. `statistics` are the initial
  // running statistics. Throws UsageError if `start` does not fit the data set.
  void begin(const ps::RunPosition& start, std::span<const float> statistics);

  // Starts to copy the bucket's current values to `values`, [bucket] f32. `values` is in use until
  // wait_values() returns.
  void read(int worker, BucketId bucket, std::span<float> values);
  // Begins a step of the worker; the worker's next pushes belong to this step. step.state has the
  // worker's running statistics.
  void begin_step(int worker, const ps::StepInfo& step);
  // Pushes one bucket's gradient. The bucket's next values are written to `values`. `gradient` and
  // `values` are in use until wait_values() returns.
  void push(int worker, BucketId bucket, std::span<const float> gradient, std::span<float> values);
  // Waits until the values of the bucket's last read() or push() have arrived.
  void wait_values(int worker, BucketId bucket);

  // Returns the worker's steps with gradients that came too late; nullopt if the job drops none.
  std::optional<ps::DroppedSteps> dropped_steps(int worker) const;
  // See ps::Client::next_lease().
  std::optional<ps::SampleRange> next_lease(int worker);
  ps::wire::JobStatusT status() const;
  std::optional<ps::wire::AssignmentT> next_assignment(int worker);
  // Waits for the worker's next assignment and returns it; nullopt when the job is over.
  std::optional<ps::wire::AssignmentT> wait_assignment(int worker);
  // Returns the snapshot with the number `id`. Precondition: the calling worker has an assignment
  // with this snapshot that is not done yet.
  std::shared_ptr<const ps::ServedSnapshot> snapshot(std::uint64_t id) const;
  void done(int worker, std::uint64_t snapshot_id, const std::vector<double>& rules);
  void request_stop(int worker, ps::StopKind kind);
  // Ends the job. Called once, when all workers have trained everything.
  void leave();
  // Wakes all workers that wait; they throw PeerError(reason).
  void abort(std::string_view reason) noexcept;

 private:
  struct Values {
    bool are_awaited = false;
    std::uint64_t version = 0;
  };
  // The state of one worker. Messages of the coordinator and events of the shard change it.
  struct Worker {
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;  // number of the worker's last step
    float learning_rate = 0.0F;
    std::vector<Values> buckets;
    ps::DropCounter drops;
    std::deque<ps::SampleRange> leases;
    std::deque<ps::wire::AssignmentT> assignments;
    bool has_all_leases = false;
    bool all_granted = false;  // Leases::all_granted has come since the last call of next_lease()
    bool wants_lease = false;  // a request for a batch is not answered yet
    bool is_finished = false;
  };
  // What the last push of a step carries besides its gradient, kept until the push is applied.
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
