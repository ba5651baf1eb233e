// A JobCase is a coordinator in a test that plays all tasks, with the messages that they send and
// receive.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/coordinator/coordinator.h"

namespace syncopate::ps {

TaskId worker(int index);
TaskId server(int index);

// Returns a job of two epochs of 12 samples in batches of 2: 12 steps; async, two workers, without
// checkpoints.
wire::DeclarationT make_declaration();
wire::DeclarationT make_declaration(Consistency consistency);
// The following two functions convert lists in a message to types that tests can compare.
std::vector<SampleRange> ranges_of(const wire::LeasesT& leases);
std::vector<WorkerClock> entries_of(const wire::SnapshotT& snapshot);
wire::PushT make_push(std::uint64_t sequence, const SampleRange& batch);

class JobCase {
 public:
  explicit JobCase(wire::DeclarationT declares = make_declaration(), int num_servers = 1,
                   bool writes_snapshots = false);

  wire::HelloT worker_hello(int index, std::uint32_t incarnation = 0) const;
  wire::HelloT server_hello(int index, std::uint32_t incarnation = 0) const;
  // Sends a Hello. Returns the line of the refusal, or "" if the task was registered.
  std::string send_hello(const wire::HelloT& hello);
  template <typename BodyT>
  void send(const TaskId& task, BodyT body) {
    coordinator->on_message(task, wire::make_message(std::move(body)));
    collect();
  }
  void lose(const TaskId& task, const std::string& reason = "is silent");
  void trained(int index, std::uint64_t sequence, const SampleRange& batch);
  void trained(int index, std::uint32_t incarnation, const wire::PushT& push);
  // Sends Ready as a worker that has received the last RollBack.
  void send_ready(int index, std::uint64_t sequence = 0);
  void dropped(int index, std::uint64_t sequence, const SampleRange& batch);

  // Removes and returns the first message of this type that was sent to the task.
  template <typename BodyT>
  std::optional<BodyT> take(const TaskId& task) {
    std::deque<wire::MessageT>& messages = received[task];
    for (auto message = messages.begin(); message != messages.end(); ++message) {
      if (message->body.type != wire::BodyUnionTraits<BodyT>::enum_value) continue;
      BodyT body = *static_cast<const BodyT*>(message->body.value);
      messages.erase(message);
      return body;
    }
    return std::nullopt;
  }
  void clear_messages() { received.clear(); }

  // Sends Hello from all tasks, and Declared from the servers.
  void register_all();
  // Registers all tasks; then the initial values are written, and training begins.
  void start(const wire::InitialisedT& from = {});
  // Requests one batch for a worker, which the coordinator must grant.
  SampleRange lease(int index);
  // Leases a batch for a worker and trains it with the worker's push `sequence`.
  void train(int index, std::uint64_t sequence);
  // For all servers, freeze_all() answers Freeze with `entries`, copy_all() Snapshot with
  // SnapshotDone.
  void freeze_all(const std::vector<WorkerClock>& entries);
  void copy_all();
  void freeze_and_copy(const std::vector<WorkerClock>& entries);
  void request_snapshot();
  // Answers, as the server, the RollBack that it was sent; returns the number of the snapshot.
  std::uint64_t roll_back(int index);
  // Requests a snapshot and plays the servers' part; returns its number.
  std::uint64_t make_snapshot(const std::vector<WorkerClock>& entries);
  // Requests a snapshot up to the copy of shard 0, and returns the coordinator's part of it.
  std::vector<std::byte> save(const std::vector<WorkerClock>& entries = {});
  // Restarts the server, which has these snapshot files.
  void restart_server(int index, std::vector<std::uint64_t> snapshots);
  void collect();

  wire::DeclarationT declaration;
  int servers;
  std::unique_ptr<Coordinator> coordinator;
  std::map<TaskId, std::deque<wire::MessageT>> received;
  std::uint64_t version = 1;                             // of the bucket of server 0
  std::map<TaskId, std::uint32_t> server_0_incarnation;  // incarnation in the last RollBack
};

// A JobCase whose training has begun.
class StartedJob : public JobCase {
 public:
  explicit StartedJob(wire::DeclarationT declares = make_declaration(), int num_servers = 1,
                      bool writes_snapshots = false)
      : JobCase(std::move(declares), num_servers, writes_snapshots) {
    start();
  }
};

// Answers, as worker `index`, that it has evaluated or written `snapshot`.
void finish_assignment(JobCase& job, int index, std::uint64_t snapshot);

// Returns make_declaration() with a checkpoint every `every_steps` steps; 0: at the end only.
wire::DeclarationT with_checkpoints(std::int64_t every_steps);

}  // namespace syncopate::ps
