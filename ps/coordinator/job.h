// The state that all parts of the coordinator share: the tasks and their phases, the declaration,
// the phase of the job, and the messages to send. The rules that change this state are in
// Registration, Snapshots and the other parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/coordinator/coordinator.h"

namespace syncopate::ps {

struct WorkerRecord {
  enum class Phase : std::uint8_t {
    kAbsent,        // the worker has never registered
    kDisconnected,  // the worker is known from the restored snapshot and has not reconnected yet
    kRegistering,   // the worker has sent Hello and waits for Welcome
    kJoining,       // the worker has received Welcome and connects to the shards
    kReady,         // the worker is connected to all shards and waits for Start
    kTraining,      // the worker has received Start
    kLeft,
    kLost,
  };
  static constexpr std::size_t kPhases = 8;
  Phase phase = Phase::kAbsent;  // changed by Job::set_phase() only
  std::uint32_t incarnation = 0;
  std::uint64_t fingerprint = 0;  // of the worker's declaration
  std::uint64_t call = 0;         // the field `call` of the worker's last Hello
  bool fits = false;              // the worker's declaration agrees with the job's
  bool was_asked = false;         // the worker was asked to repeat its Hello with the declaration
  std::uint64_t last_push = 0;    // sequence of the worker's last push that ended a step on shard 0
  // The coordinator ignores the worker's pushes up to this sequence, since the worker made them
  // before the servers rolled back.
  std::uint64_t counts_after = 0;
  bool is_resting = false;    // the servers know that the worker has nothing to push for now
  int open_requests = 0;      // number of the worker's unanswered requests for batches
  bool is_dismissed = false;  // the worker was told that no batches are left
  // True from the roll-back of all servers until the worker sends Ready.
  bool must_roll_back = false;
  std::string host;
  std::int64_t pid = 0;
  bool has_failed = false;  // the last incarnation sent Failing
  std::string reason;       // why the worker was lost
};

struct ServerRecord {
  enum class Phase : std::uint8_t {
    kAbsent,
    kLost,
    kDeclaring,    // registered; has not confirmed the declaration
    kEmpty,        // has a shard without values and waits for RollBack
    kRollingBack,  // reads the snapshot file that it rolls back to
    kServing,
  };
  Phase phase = Phase::kAbsent;
  // True if this incarnation of the server has been in phase kServing. Its values are then valid
  // when it reconnects.
  bool was_serving = false;
  std::uint32_t incarnation = 0;
  std::string endpoint;
  std::uint64_t fingerprint = 0;
  std::set<std::uint64_t> snapshots;  // snapshots that the server has as files
};

using WorkerPhase = WorkerRecord::Phase;
using ServerPhase = ServerRecord::Phase;

struct Job {
  enum class Phase : std::uint8_t {
    kRegistering,   // not all tasks have registered
    kInitialising,  // workers are admitted; worker `initialiser` writes the initial values
    kTraining,
    kFinishing,  // the final snapshot is done; workers are leaving
    kOver,
  };

  explicit Job(CoordinatorOptions with)
      : options(std::move(with)), servers(static_cast<std::size_t>(options.servers)) {
    while (is_late_worker(initialiser)) ++initialiser;
  }

  const CoordinatorOptions options;
  Phase phase = Phase::kRegistering;
  std::optional<std::string> failure;
  bool has_lost_variables = false;  // the job failed: no snapshot exists on all servers
  std::optional<wire::DeclarationT> declaration;
  std::uint64_t fingerprint = 0;  // of the declaration
  int declared_by = 0;            // the worker that sent the declaration
  // Empty until the first Hello, which has the number of workers.
  std::vector<WorkerRecord> workers;
  std::vector<ServerRecord> servers;
  int initialiser = 0;  // index of the worker that writes the initial values
  // The number of restarts of server 0. A restarted server 0 does not know which numbers (of
  // incarnations and snapshots) it gave out after the restored snapshot. So the numbers of each
  // generation start far above the numbers of the previous generation.
  int generation = 0;
  std::uint64_t last_snapshot = 0;
  bool is_copying = false;       // a snapshot has begun, and not all servers have copied their part
  bool is_rolling_back = false;  // all servers are rolling back together
  // Set by restore(). Cleared when all workers that were disconnected at that time have reported
  // how many steps ended after the snapshot.
  bool awaits_counts = false;
  std::vector<std::uint64_t> restored_pushes;  // by worker: its last push in the snapshot
  std::uint64_t steps_after_snapshot = 0;      // steps after the snapshot that were reported so far
  std::vector<Outgoing> outgoing;

  WorkerRecord& worker(int index) { return workers[static_cast<std::size_t>(index)]; }
  const WorkerRecord& worker(int index) const { return workers[static_cast<std::size_t>(index)]; }
  ServerRecord& server(int index) { return servers[static_cast<std::size_t>(index)]; }
  const ServerRecord& server(int index) const { return servers[static_cast<std::size_t>(index)]; }
  int num_workers() const { return static_cast<int>(workers.size()); }
  int num_servers() const { return static_cast<int>(servers.size()); }

  void declare(wire::DeclarationT of_job, int by);
  void set_num_workers(int count);  // all are absent
  void set_phase(int worker, WorkerRecord::Phase phase);
  bool is_late_worker(int index) const;  // listed in CoordinatorOptions::late_workers
  bool is_present(int index) const;      // has registered, and has neither left nor been lost
  bool is_admitted(int index) const;     // present, and has received Welcome
  bool is_training(int index) const;     // present, and has received Start
  // count() returns how many workers are in this phase; is_any() returns whether any worker is;
  // count_present() returns how many workers are present in any phase. These functions are called
  // for every event, and take constant time.
  int count(WorkerRecord::Phase at) const { return counts_[static_cast<std::size_t>(at)]; }
  bool is_any(WorkerRecord::Phase at) const { return count(at) > 0; }
  int count_present() const;
  std::optional<int> lowest_training() const;
  bool all_servers_serve() const;
  // Returns the new incarnation of a task that has started again; `last` is its previous
  // incarnation. Returns nullopt if all incarnations of this generation are used up.
  std::optional<std::uint32_t> next_incarnation(std::uint32_t last) const;

  Consistency consistency() const;
  // Returns true for kSync without backup workers: all workers take each step together.
  bool is_synchronous() const;
  // Returns how many batches, as the ledger (ledger.h) divides the data, make one update. This is 1
  // for synchronous workers, which share one batch. With backup workers it is the number of
  // gradients that the update waits for, and under kRennala the number that the servers collect.
  std::int64_t batches_per_step() const;
  // Returns whether servers collect the gradients of an update over time (kRennala).
  bool collects_gradients() const;

  template <typename BodyT>
  void send_to_worker(int index, BodyT body) {
    outgoing.push_back({{TaskId::Role::kWorker, index},
                        worker(index).incarnation,
                        wire::make_message(std::move(body))});
  }
  template <typename BodyT>
  void send_to_server(int index, BodyT body) {
    outgoing.push_back({{TaskId::Role::kServer, index},
                        server(index).incarnation,
                        wire::make_message(std::move(body))});
  }
  // Sends a message to all registered servers.
  template <typename BodyT>
  void send_to_servers(const BodyT& body) {
    for (int s = 0; s < num_servers(); ++s) {
      const ServerRecord::Phase at = server(s).phase;
      if (at != ServerRecord::Phase::kAbsent && at != ServerRecord::Phase::kLost) {
        send_to_server(s, body);
      }
    }
  }

  // Sends a registered server its incarnation and the peer timeout.
  void welcome_server(int index);
  std::vector<std::unique_ptr<wire::ServerAddressT>> roster() const;
  void send_roster_to(int index);
  void send_roster();  // sends the servers' addresses to all admitted workers
  // Ends the job as failed and sends the reason to all tasks.
  void fail(const std::string& reason);

 private:
  std::array<int, WorkerRecord::kPhases> counts_{};  // of workers, by phase
};

std::string describe_worker(int index);  // returns "worker 2"
std::string describe_server(int index);  // returns "server 1"

}  // namespace syncopate::ps
