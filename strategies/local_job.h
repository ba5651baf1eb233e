// A job whose workers are replicas of this process: the coordinator and the one server that its
// strategies otherwise meet over the network, with the same rules and none of the sockets. The
// calling threads do all the work: whoever makes a piece of an update due takes it up, and whoever
// waits for values helps. Used by central_storage_asynchronous.cc.
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
#include "ps/coordinator/coordinator.h"
#include "strategies/job_messages.h"
#include "strategies/local_server.h"

namespace syncopate {

// Thread-safe; calls that name a worker come from its own thread, next_lease() from its reader's.
// What waits has no time limit of its own: a replica that fails aborts the job, and all wake. Then
// whatever trains, waits or asks for more throws PeerError.
class LocalJob {
 public:
  // Throws UsageError for a declaration that makes no sense.
  explicit LocalJob(ps::wire::DeclarationT declaration);

  int num_workers() const noexcept { return static_cast<int>(workers_.size()); }
  // Alone with it, as before begin(): to write first values and slots, or to read them.
  ps::Shard& shard() const noexcept { return server_.shard(); }

  // The shard holds what training starts from; `statistics` are the running ones. Throws UsageError
  // for a position that the data does not have.
  void begin(const ps::RunPosition& start, std::span<const float> statistics);

  // The worker's values, [bucket] f32, written until wait_values() returns.
  void read(int worker, BucketId bucket, std::span<float> values);
  // The pushes that follow are of one step. ends: what its last one says; running statistics.
  void begin_step(int worker, ps::wire::PushT ends, std::span<const float> statistics);
  // One bucket's gradient, and where the next values go: both in use until wait_values() returns.
  void push(int worker, BucketId bucket, float learning_rate, std::span<const float> gradient,
            std::span<float> values);
  // Returns when what the last read or push of the bucket asked for is there.
  void wait_values(int worker, BucketId bucket);

  std::optional<ps::SampleRange> next_lease(int worker);
  JobStatus status() const;
  std::optional<Appointment> appointment(int worker);
  std::optional<Appointment> wait_appointment(int worker);
  // The copy of this cut, which is under appointment.
  std::shared_ptr<const ps::CutCopy> copy(std::uint64_t cut) const;
  void done(int worker, std::uint64_t cut);
  void request_stop(int worker, ps::StopKind kind);
  // Everybody has trained all.
  void leave();
  // All who wait throw.
  void abort(std::string_view reason) noexcept;

 private:
  struct Values {
    bool are_awaited = false;
    std::uint64_t version = 0;
  };
  // What a worker is told.
  struct Worker {
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;  // of its last step
    std::vector<Values> buckets;
    std::deque<ps::SampleRange> leases;
    std::deque<ps::wire::AppointmentT> appointments;
    bool has_all_leases = false;
    bool is_finished = false;
  };
  // What a step's last push said, until it is applied.
  struct Step {
    ps::wire::PushT push;
    std::vector<float> statistics;
  };
  // A bucket's events, brought into the order in which they happened.
  struct EventLine {
    std::uint64_t next = 0;
    std::map<std::uint64_t, ps::ShardEvent> early;
  };

  // With the mutex held, these seven. They wake nobody.
  void meet(const ps::RunPosition& start);
  void hear(const ps::Party& from, const ps::wire::MessageT& message);
  void settle();
  void tell(Worker& worker, const ps::wire::MessageT& message);
  void happened(const ps::ShardEvent& event);
  void step_ended(const ps::ShardEvent& event);
  void throw_if_failed() const;

  template <typename Body>
  void say(int worker, Body body);
  // It pushes nothing after its last step: nobody waits for it any more.
  void rest(int worker);
  // Does what is due on the bucket; everywhere, if that makes more due. Without the mutex.
  void work_on(BucketId bucket);
  void work_everywhere();
  // Returns whether work may have become due on any bucket.
  bool work_once(BucketId bucket);
  bool take_events(const std::vector<ps::ShardEvent>& events);
  void call_helpers();
  Worker& worker(int index) { return workers_[static_cast<std::size_t>(index)]; }

  mutable std::mutex mutex_;  // guards all below but the shard
  mutable std::condition_variable changed_;
  LocalServer server_;
  ps::Coordinator coordinator_;
  std::vector<Worker> workers_;
  std::vector<EventLine> lines_;                              // by bucket
  std::map<std::pair<int, std::uint64_t>, Step> open_steps_;  // by worker and sequence
  ps::StalenessHistogram staleness_;
  std::uint64_t calls_for_help_ = 0;
  std::optional<std::string> failure_;
  std::atomic<int> waiting_{0};  // in wait_values()
};

}  // namespace syncopate
