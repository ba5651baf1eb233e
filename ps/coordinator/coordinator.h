// The coordinator of a parameter-server job, which server 0 runs besides its shard. It decides
// which tasks take part, which worker trains which samples, and when a snapshot is made and which
// worker evaluates it or writes it to a checkpoint. It is a pure state machine: messages in,
// messages out; no sockets, threads or clock. It is driven by ControlServer, and by LocalJob
// (strategies/) if the replicas share one process. Source: the flows of ps/wire/PROTOCOL.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/coordinator/ledger.h"
#include "ps/shard/shard.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// Names a task of the job. Server 0 is a task too: it registers its own shard with the coordinator
// as the other servers do.
struct TaskId {
  enum class Role : std::uint8_t { kWorker, kServer };
  Role role = Role::kWorker;
  int index = 0;
  bool operator==(const TaskId&) const = default;
  bool operator<(const TaskId& other) const {
    return role != other.role ? role < other.role : index < other.index;
  }
};
std::string describe(const TaskId& task);  // such as "worker 2"

struct Outgoing {
  TaskId to;
  std::uint32_t incarnation = 0;  // of the receiver, when the message was made
  wire::MessageT message;
};

struct CoordinatorOptions {
  std::string nonce;  // of the job; empty: a task may be of another job without one
  int servers = 1;
  std::int64_t peer_timeout_ms = 5000;
  std::string process;            // process_name() of server 0
  bool writes_snapshots = false;  // servers write their part of each snapshot to a file
  // The generation: grows with every start of server 0 in this job, so that numbers given out after
  // restore() differ from those given out before. 0: one more than the snapshot's, which suffices
  // for one restart per snapshot.
  int life = 0;
  // False if a worker that is lost will not be started again: the loss of one before all tasks have
  // registered then fails the job.
  bool workers_return = true;
  // Workers that training does not wait for at the start; they are admitted when they register. At
  // least one worker must not be listed. Must be empty where training is synchronous.
  std::vector<int> late_workers = {};
};

// The coordinator of a job. Used by one thread at a time.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator();

  // The coordinator's decision about a Hello. If `task` is set, the task is registered, and its
  // Welcome is an outgoing message now or once the task can be admitted. Otherwise the caller sends
  // `answer`: Refused, or DeclarationRequest to a worker that has to repeat its Hello.
  struct HelloAnswer {
    std::optional<TaskId> task;
    std::uint32_t incarnation = 0;
    wire::MessageT answer;
  };
  // Handles a Hello. A new incarnation of a task replaces the previous one, which counts as lost.
  // While tasks are still registering, a task that does not fit this job ends the job.
  HelloAnswer on_hello(const wire::HelloT& hello);

  // Handles other messages of a registered task. A message that does not fit the state is ignored.
  void on_message(const TaskId& from, const wire::MessageT& message);
  // Called when the task's timeout has passed, or its process ended without Leaving; `reason` says
  // which. For a server that is already lost: its reconnect timeout has passed, and the job fails.
  void on_task_lost(const TaskId& task, const std::string& reason);
  // Called when the rendezvous timeout has passed: the job fails, and the error names
  // missing_tasks(). `waited` completes the sentence: "within 120 s at node3:13565".
  void on_rendezvous_timeout(const std::string& waited);
  // Called when the workers of a restored job have had enough time to reconnect: batches that the
  // missing ones may hold are granted to others.
  void on_reconnect_timeout();
  // Called when a push that ends a step was applied on shard 0, or was dropped there as too late.
  void on_push_applied(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push);
  void on_push_dropped(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push);
  // Sets the staleness over all pushes that shard 0 has applied so far; status() reports it.
  void set_staleness(double mean, std::uint64_t max);
  // Called when the snapshot interval has passed: a snapshot is made as soon as possible, unless
  // one is being made.
  void request_snapshot();

  // Returns the coordinator's messages to send, in order, and empties the list.
  std::vector<Outgoing> take_outgoing();

  bool has_started() const noexcept;
  // Returns true once all workers have left after the final snapshot, or the job has failed.
  bool is_over() const noexcept;
  // Returns why the job failed, if it failed.
  const std::optional<std::string>& failure() const noexcept;
  // Returns whether the job failed because variables are lost: no snapshot can be restored.
  bool has_lost_variables() const noexcept;
  wire::JobStatusT status() const;
  // Returns whether the job expects no more of this worker: it said that it leaves, or was told
  // that the job is over. Its process may end at any time.
  bool has_left(const TaskId& task) const noexcept;
  // Returns the number of workers that are registered and have neither left nor been lost.
  int live_workers() const noexcept;
  // Returns the workers that are admitted but not yet ready, although nothing delays them. The
  // start or a snapshot may be waiting for them.
  std::vector<int> joining_workers() const;
  // Returns the tasks without which the job cannot continue, "worker 1, server 2"; nothing if all
  // are there. The caller's clock decides how long to wait for them.
  std::optional<std::string> missing_tasks() const;

  // Returns the coordinator's state for restore(), as of a snapshot: a batch counts as trained if
  // and only if its push is in the snapshot. Called when shard 0's part is copied, before
  // SnapshotDone: the pushes in it have been reported by on_push_applied(). Nothing if the snapshot
  // was given up in the meantime.
  std::optional<std::vector<std::byte>> save(std::uint64_t snapshot) const;
  // Restores the coordinator. Called before the first Hello, once for each existing snapshot,
  // oldest first. The job continues from the last one, and can roll back to an earlier one if a
  // server lacks a file. Throws FileError for bytes that save() did not write.
  void restore(std::span<const std::byte> saved);
  // The number of newest snapshots that a roll-back can choose from; servers keep at least as many
  // snapshot files.
  static constexpr std::size_t kKeptSnapshots = 3;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps
