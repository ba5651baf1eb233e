// The sessions of workers with a server's data socket. They tell which worker each connection
// belongs to, and which messages of a worker are dropped. Used by DataService and its parts.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "ps/net/segment.h"
#include "ps/server/served_variables.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// The session of a worker that has sent DataHello and was accepted.
struct WorkerSession {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t call = 0;       // number of the connection, see DataHello
  std::string peer;             // routing id of the connection
  std::uint64_t token = 0;      // sent to the worker in DataWelcome
  std::uint64_t last_push = 0;  // the highest sequence of the worker's pushes so far
  // Worker's shared memory; null if values are sent in frames.
  std::shared_ptr<const MappedSegment> segment;
  bool is_mapping = false;  // the segment is being mapped; DataWelcome is sent afterwards
  std::optional<std::uint64_t> mapped_by_call;  // the last call that asked to map a segment
  bool has_logged_drop = false;
};

// The sessions of all workers. A worker has at most one connection, and a connection belongs to one
// worker. Used by the data thread only, except unfit_messages().
class WorkerSessions {
 public:
  // `shard` is the number of this server.
  WorkerSessions(int workers, int shard);

  struct HelloResult {
    // The worker's session. Null if the Hello was refused, or was ignored because the worker will
    // greet again.
    WorkerSession* session = nullptr;
    bool is_new = false;  // this incarnation had no session before
    std::optional<wire::RefusedT> refusal = {};
  };
  // Opens or refuses the session of the worker that sent `hello`. `served` is null before the
  // coordinator has declared the job.
  HelloResult on_hello(const std::string& peer, const wire::DataHelloT& hello,
                       const ServedVariables* served);
  // Return the session with these properties; null if there is no such session. `peer` is the
  // routing id of the session's connection, `token` the token of the session.
  WorkerSession* find(const std::string& peer, std::uint64_t token);
  WorkerSession* find(WorkerId worker, std::uint32_t incarnation);
  WorkerSession* find_worker(WorkerId worker);  // session of any incarnation
  // Refuses this incarnation of the worker and earlier incarnations from now on, and ends the
  // worker's session if it belongs to one of them. Returns the incarnation of the ended session;
  // nullopt if no session was ended.
  std::optional<std::uint32_t> remove(WorkerId worker, std::uint32_t incarnation);
  void clear();
  // Returns whether a session of this connection has ended. Late messages over such a connection
  // are expected, and not counted as errors.
  bool has_ended(const std::string& peer) const { return ended_peers_.contains(peer); }

  // Counts a worker's message that does not fit the served variables, and logs the first such
  // message of each session. `message` is the kind of message, such as "push". `bucket` is -1 if
  // the message does not concern a bucket.
  void drop(WorkerSession& session, const char* message, int bucket, const std::string& problem);
  // Returns the shard's number for the bucket with number `bucket` in the job. If the shard does
  // not have the bucket, calls drop() and returns -1.
  int shard_bucket(WorkerSession& session, const ServedVariables& served, const char* message,
                   int bucket);
  std::int64_t unfit_messages() const noexcept { return unfit_messages_; }  // thread-safe

 private:
  void end(WorkerId worker);
  void forget_connection(WorkerId worker);

  const int workers_;
  const int shard_;
  std::map<WorkerId, WorkerSession> sessions_;
  std::map<std::string, WorkerId> workers_by_peer_;
  std::set<std::string> ended_peers_;          // connections with an ended session
  std::map<WorkerId, std::uint32_t> removed_;  // by worker: the last refused incarnation
  std::atomic<std::int64_t> unfit_messages_{0};
};

}  // namespace syncopate::ps
