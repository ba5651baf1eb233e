// The data side of a server: one thread that owns the data socket, passes the workers' requests to
// the shard, and sends the answers. The control thread calls the functions of DataService to change
// the variables that are served, and to fetch ended steps and complete snapshots.
//
// WorkerSessions handles the sessions of workers, RequestService pushes and pulls, and
// SnapshotService snapshots. All three run on the data thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "models/base/resource_limits.h"
#include "ps/net/link_forwarder.h"
#include "ps/server/data_service_queues.h"
#include "ps/server/request_service.h"
#include "ps/server/segment_mapper.h"
#include "ps/server/served_variables.h"
#include "ps/server/snapshot_service.h"
#include "ps/server/worker_sessions.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

struct DataServiceOptions {
  int index = 0;  // the number of this server
  int workers = 1;
  std::string nonce;
  std::string host;        // the name under which workers reach this server
  std::uint16_t port = 0;  // 0 lets the system choose a port
  int threads = 1;         // threads that update the variables
  // The most bytes that the unanswered requests of all workers together may have (credit, see
  // ps/wire/PROTOCOL.md). The credit of each worker is an equal part of this number; without shared
  // memory, it is at least the bytes of two messages with the largest bucket.
  std::int64_t credit_bytes = std::int64_t{8} << 20;
  bool uses_segments = true;  // use the shared memory of workers on this host
  // How long a worker may take to send the descriptor of its shared memory.
  std::chrono::milliseconds segment_timeout = std::chrono::seconds(5);
  int servers = 1;
  // File for the record of pushes (order_record.h); empty for no record.
  std::filesystem::path record;
  Link link;  // slow network emulated for the connections of workers
};

// The data side of a server: owns the data socket, the data thread and the update threads.
// Thread-safe.
class DataService {
 public:
  explicit DataService(const DataServiceOptions& options);
  DataService(const DataService&) = delete;
  DataService& operator=(const DataService&) = delete;
  ~DataService();

  std::uint16_t port() const noexcept { return port_; }

  // Starts to serve these variables. Ends all sessions, so that workers must greet again.
  void serve(std::shared_ptr<ServedVariables> served, std::uint32_t incarnation);
  // Removes this incarnation of the worker and earlier incarnations. Their requests are refused
  // from now on.
  void remove_worker(WorkerId worker, std::uint32_t incarnation);
  // Starts the work (updates, copies of values) that is due on all buckets. Must be called after
  // the caller has changed the shard.
  void schedule_all();
  // Makes the shard copy its values into the snapshot. The shard must be frozen for this snapshot.
  // Once the snapshot is complete, take_finished_snapshot() returns it. An earlier incomplete
  // snapshot is abandoned.
  void begin_snapshot(std::shared_ptr<ServedSnapshot> snapshot);
  // Sets the only snapshot that workers can read from now on; if `snapshot` is null, workers can
  // read none.
  void publish(std::shared_ptr<const ServedSnapshot> snapshot);
  void set_running_statistics(std::vector<float> values);

  // Returns a descriptor that is readable when take_ended_steps(), take_finished_snapshot() or
  // failure() may have a result.
  int descriptor() const noexcept { return results_.descriptor(); }
  std::vector<EndedStep> take_ended_steps() { return results_.take_steps(); }
  std::vector<DepartedWorker> take_departed_workers() { return results_.take_departed(); }
  std::shared_ptr<ServedSnapshot> take_finished_snapshot() { return results_.take_snapshot(); }
  // Returns the error that ended the data thread or an update thread.
  std::optional<std::string> failure() const { return results_.failure(); }

  // Returns the number of received messages without a valid header.
  std::int64_t foreign_messages() const noexcept { return foreign_messages_; }
  // Returns the number of messages dropped because they did not have the token of a session.
  std::int64_t stranger_messages() const noexcept { return stranger_messages_; }
  // Returns the number of connections that ended without a greeting of this job.
  std::int64_t callers_without_greeting() const noexcept { return callers_without_greeting_; }
  // Returns the number of workers' messages dropped because they do not fit the served variables.
  std::int64_t unfit_messages() const noexcept { return sessions_.unfit_messages(); }

 private:
  void open_socket();
  void run(const std::stop_token& stop);
  int poll_timeout() const;  // milliseconds; -1: no limit
  // Runs the work in queue_. `is_readable` says whether poll() has found the queue readable.
  void run_posted(bool is_readable);
  void on_message(wire::Received& message);
  void on_hello(wire::Received& message, const wire::DataHelloT& hello);
  // Starts to map the worker's shared memory, if the worker offers it. Returns whether a mapping is
  // under way; if so, DataWelcome is sent when it is done.
  bool begin_mapping(WorkerSession& session, const wire::DataHelloT& hello);
  void on_mapped(WorkerId worker, std::uint32_t incarnation,
                 std::shared_ptr<const MappedSegment> segment);
  std::int64_t credit_of(const WorkerSession& session) const;
  void send_welcome(const WorkerSession& session);

  const DataServiceOptions options_;
  wire::Context context_{wire::io_threads_for(usable_cpu_count())};
  std::unique_ptr<wire::Socket> socket_;
  std::unique_ptr<LinkForwarder> forwarder_;  // null if workers connect to the socket itself
  std::uint16_t port_ = 0;
  DataThreadQueue queue_;
  DataServiceResults results_;
  std::atomic<std::int64_t> foreign_messages_{0};
  std::atomic<std::int64_t> stranger_messages_{0};
  std::atomic<std::int64_t> callers_without_greeting_{0};

  // Members that only the data thread uses.
  std::shared_ptr<ServedVariables> served_;  // null before the job is declared
  WorkerSessions sessions_;
  SnapshotService snapshots_;
  std::unique_ptr<RequestService> requests_;

  SegmentMapper mapper_;  // its thread posts to queue_
  std::jthread thread_;
};

}  // namespace syncopate::ps
