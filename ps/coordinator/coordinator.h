// The coordinator of a parameter-server job, which server 0 runs besides its shard. The coordinator
// decides which tasks take part, which worker trains which samples, when a snapshot is made, and
// which worker evaluates the snapshot or writes a checkpoint from it. It is a pure state machine:
// it takes messages and returns messages, and has no sockets, threads or clock. ControlServer
// drives it, or LocalJob (strategies/local_job.h) if the replicas share one process.
// ps/wire/PROTOCOL.md defines the messages.
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

// Names a task of the job. Server 0 is a task too: it registers its shard with the coordinator like
// the other servers.
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
  std::uint32_t incarnation = 0;  // incarnation of the receiver when the message was made
  wire::MessageT message;
};

struct CoordinatorOptions {
  // The job's nonce. If it is empty, the coordinator cannot tell tasks of another job without a
  // nonce from tasks of this job.
  std::string nonce;
  int servers = 1;
  std::int64_t peer_timeout_ms = 5000;
  std::string process;            // process_name() of server 0
  bool writes_snapshots = false;  // servers write their part of each snapshot to a file
  // The generation of the job (Job::generation), a number that grows with every start of server 0.
  // So the numbers of incarnations and snapshots that are given out after restore() differ from the
  // numbers given out before. 0 stands for the generation in the snapshot plus 1, which is enough
  // if server 0 restarts at most once per snapshot.
  int life = 0;
  // False if a lost worker will not be started again. The job then fails if a worker is lost before
  // all tasks have registered.
  bool workers_return = true;
  // Workers that may join late: training starts without them, and they are admitted when they
  // register. At least one worker must not be listed. Must be empty if training is synchronous.
  std::vector<int> late_workers = {};
};

// The coordinator of a job. Used by one thread at a time.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator();

  // The coordinator's decision about a Hello. If `task` is set, the task is registered;
  // take_outgoing() returns its Welcome as soon as the task can be admitted. Otherwise the caller
  // sends `answer`, which is Refused, or DeclarationRequest if the worker must repeat its Hello.
  struct HelloAnswer {
    std::optional<TaskId> task;
    std::uint32_t incarnation = 0;
    wire::MessageT answer;
  };
  // Handles a Hello. A new incarnation of a task replaces the previous incarnation, which is then
  // lost. While tasks are still registering, a task that does not fit this job ends the job.
  HelloAnswer on_hello(const wire::HelloT& hello);

  // Handles a message of a registered task, other than Hello. Ignores a message that does not fit
  // the state of the job or of the task.
  void on_message(const TaskId& from, const wire::MessageT& message);
  // Handles the loss of a task. Called when the task's timeout has passed, or the task's process
  // ended without sending Leaving; `reason` says which of the two. For a lost server, the function
  // is called a second time when the reconnect timeout has passed; the second call fails the job.
  void on_task_lost(const TaskId& task, const std::string& reason);
  // Fails the job with an error that names missing_tasks(). Called when the rendezvous timeout has
  // passed. `waited` is the end of the error message, such as "within 120 s at node3:13565".
  void on_rendezvous_timeout(const std::string& waited);
  // Grants to other workers the batches that missing workers may hold. Called when the workers of a
  // restored job have had enough time to reconnect.
  void on_reconnect_timeout();
  // on_push_applied() records that the push's batch is trained; called when shard 0 has applied a
  // push that ends a step; `version` is the version of the push's bucket after it.
  // on_push_dropped() makes the push's batch available to workers again; called when shard 0 has
  // dropped a push that ends a step, because the push was too late.
  void on_push_applied(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push,
                       std::uint64_t version);
  void on_push_dropped(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push);
  // Sets the mean and the largest staleness of all pushes that shard 0 has applied so far. status()
  // reports both numbers.
  void set_staleness(double mean, std::uint64_t max);
  // Requests a snapshot, which is made as soon as possible. Does nothing while a snapshot requested
  // before is being copied. Called when the snapshot interval has passed.
  void request_snapshot();

  // Returns the coordinator's messages to send, in order, and empties the list.
  std::vector<Outgoing> take_outgoing();

  bool has_started() const noexcept;
  // Returns true once all workers have left after the final snapshot, or the job has failed.
  bool is_over() const noexcept;
  // Returns why the job failed, if it failed.
  const std::optional<std::string>& failure() const noexcept;
  // Returns whether the job failed because variables are lost and no snapshot can be restored.
  bool has_lost_variables() const noexcept;
  wire::JobStatusT status() const;
  // Returns whether the task has finished, which means that the task has sent Leaving or was told
  // that the job is over. The end of its process then does not count as the loss of the task.
  bool has_left(const TaskId& task) const noexcept;
  // Returns the number of workers that are registered and have neither left nor been lost.
  int live_workers() const noexcept;
  // Returns the workers that are admitted and not yet ready. The start of training or a snapshot
  // may be waiting for these workers. Returns no workers while a server is missing or rolls back,
  // because the workers may then be waiting for this server.
  std::vector<int> joining_workers() const;
  // Returns the missing tasks without which the job cannot continue, such as "worker 1, server 2";
  // nullopt if no task is missing. The caller decides how long to wait for them.
  std::optional<std::string> missing_tasks() const;

  // Returns the coordinator's state for restore() as it was at a snapshot. A batch is trained in
  // this state if and only if its push is in the snapshot. Called after shard 0 has copied its part
  // and before SnapshotDone; by then on_push_applied() has been called for all pushes in the
  // snapshot. Returns nullopt if the snapshot was given up in the meantime.
  std::optional<std::vector<std::byte>> save(std::uint64_t snapshot) const;
  // Restores the coordinator. Called before the first Hello, once for each existing snapshot,
  // oldest first. The job continues from the newest snapshot, and can roll back to an earlier
  // snapshot if a server does not have its file of the newest snapshot. Throws FileError for bytes
  // that save() did not write.
  void restore(std::span<const std::byte> saved);
  // How many of the newest snapshots a roll-back can choose from. Servers keep at least this number
  // of snapshot files.
  static constexpr std::size_t kKeptSnapshots = 3;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps
