// Handles pushes, pulls and writes of workers. Checks each request, passes it to the shard, and
// turns the shard's events into answers. Part of DataService.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/server/buffer_pool.h"
#include "ps/server/data_service_queues.h"
#include "ps/server/order_record.h"
#include "ps/server/served_requests.h"
#include "ps/server/served_variables.h"
#include "ps/server/snapshot_service.h"
#include "ps/server/update_threads.h"
#include "ps/server/worker_sessions.h"
#include "ps/shard/statistics_sum.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

struct RequestServiceOptions {
  int index = 0;  // the number of this server
  int servers = 1;
  int threads = 1;  // threads that update the variables
  // File for the record of pushes (order_record.h); empty for no record.
  std::filesystem::path record;
};

// Answers the pushes, pulls and writes of workers. Used by the data thread only. All arguments of
// the constructor must outlive the object.
class RequestService {
 public:
  RequestService(const RequestServiceOptions& options, wire::Socket& socket,
                 WorkerSessions& sessions, SnapshotService& snapshots, DataThreadQueue& queue,
                 DataServiceResults& results);

  // Serves this shard from now on. Requests to the previous shard are not answered.
  void serve(std::shared_ptr<ServedVariables> served, std::uint32_t incarnation);
  std::uint32_t incarnation() const noexcept { return current_.incarnation; }

  void push(WorkerSession& session, wire::Envelope& envelope, const wire::PushT& header);
  void pull(WorkerSession& session, const wire::PullT& header);
  void probe(const WorkerSession& session, const wire::ProbeT& header);
  void write(WorkerSession& session, const wire::Envelope& envelope, const wire::WriteT& header);

  // Handles the events of the shard.
  void take_events();
  // Starts the work (updates, copies of values) that is due on all buckets. Called when code
  // outside this class has changed the shard.
  void schedule_all();
  // Returns the time until update_due() has work although no message comes; nullopt if there is no
  // such time.
  std::optional<std::chrono::nanoseconds> time_to_deadline() const;
  // Starts the updates whose time has come (Consistency::kQuorum).
  void update_due();
  // Passes a complete snapshot to the control thread; does nothing for null.
  void finish(std::shared_ptr<ServedSnapshot> snapshot);
  // Frees the memory of previously served shards once no update thread uses them.
  void release_retired();

 private:
  using Clock = ServedRequest::Clock;
  // The totals (loss, samples) of an update with gradients of several workers.
  struct StepTotals {
    std::uint64_t version = 0;
    wire::StepSumsT sums;
    Clock::time_point last_received;  // when the update's last push was received
  };
  // A served shard, and the requests to it.
  struct ServedShard {
    std::shared_ptr<ServedVariables> variables;
    std::uint32_t incarnation = 0;
    ServedRequests open;
    std::map<int, StepTotals> totals;  // totals of the last update, by bucket of the shard
    std::optional<StatisticsSum> statistics;
  };

  Shard& shard() const { return *current_.variables->shard; }
  Bucket bucket_range(int shard_bucket) const;
  std::size_t state_bytes() const;  // bytes of the running statistics
  void write_state(WorkerSession& session, const wire::Envelope& envelope,
                   const wire::WriteT& header);
  // Returns the memory for the bucket's next values for this worker: a range of the worker's
  // segment, or open.answer. The shard writes the values to this memory.
  AnswerMemory answer_window(const WorkerSession& session, ServedRequest& open, int shard_bucket);
  // Lets up to `threads` threads do the work (updates, copies of values) that is due on the bucket.
  // If `threads` is 1, the data thread does the work.
  void schedule(int shard_bucket, int threads);
  int threads_for(const WorkerSession& session) const;
  void on_events(const std::vector<ShardEvent>& events);
  void send_consumed(const std::vector<std::uint64_t>& tokens);
  void on_processed(const ShardEvent& event, ServedRequest& open);
  void on_answered(const ShardEvent& event, ServedRequest& open);
  void add_statistics(const ServedRequest& open);
  void add_totals(const ShardEvent& event, const ServedRequest& open);
  // Returns how long other workers delayed the answer to a push that ends a step, because their
  // pushes of this step came later or because the consistency rule waited for them. Time for
  // transfers is not included.
  std::chrono::microseconds peers_wait(const ServedRequest& open, const StepTotals* totals) const;

  const RequestServiceOptions options_;
  wire::Socket& socket_;
  WorkerSessions& sessions_;
  SnapshotService& snapshots_;
  DataServiceResults& results_;
  ServedShard current_;  // without variables before the first serve()
  // Previous shards. They are not freed while update threads may still read and write their memory.
  std::vector<ServedShard> retired_;
  std::uint64_t next_token_ = 1;
  std::shared_ptr<BufferPool> buffers_ = std::make_shared<BufferPool>();
  std::unique_ptr<ServiceRecord> record_;
  bool has_ended_steps_ = false;  // steps were added to results_ since the last notify()
  UpdateThreads updates_;
};

}  // namespace syncopate::ps
