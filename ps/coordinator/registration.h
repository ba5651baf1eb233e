// Registration of tasks: Hello, declaration, Welcome, initial values, Start. At the beginning all
// tasks start together, later ones one by one. Source: ps/wire/PROTOCOL.md, "Rules, Join".
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"

namespace syncopate::ps {

// Returns the refusal of a task that does not know the job's nonce.
wire::RefusedT refuse_other_job(const wire::HelloT& hello);

// Returns the reason to refuse a task, because it does not fit the job by size or
// declaration, or its incarnation may not register; nothing when it may.
std::optional<wire::RefusedT> find_refusal(const Job& job, const wire::HelloT& hello);

// Returns whether a new worker's declaration must be compared with the job's, but is missing in its
// Hello.
bool lacks_declaration(const Job& job, const wire::HelloT& hello);

// Registration is used by one thread at a time. Precondition of all calls: the previous incarnation
// of the task has been removed.
class Registration {
 public:
  Registration(Job& job, LeaseQueue& leases) : job_(job), leases_(leases) {}

  // Handle a Hello of a new incarnation, which find_refusal() has accepted.
  void on_new_worker(const wire::HelloT& hello);
  // Handles a Hello that a worker repeats with its declaration before it is admitted. Returns false
  // if the Hello is of another process.
  bool on_repeated_hello(const wire::HelloT& hello);
  void on_new_server(const wire::HelloT& hello);
  // Handle a Hello of a known incarnation over a new connection.
  void on_worker_reconnect(const wire::HelloT& hello);
  // Logs, once after a restart of server 0, how many steps are trained again. Called when all known
  // workers have reconnected, or have had enough time.
  void report_steps_after_snapshot();
  void on_server_reconnect(const wire::HelloT& hello);

  void on_declared(int server, const wire::DeclaredT& declared);
  void on_initialised(int worker, const wire::InitialisedT& initialised);
  void on_ready(int worker, const wire::ReadyT& ready);
  // Admits and starts the workers that can be admitted and started now.
  void advance();
  // Called when all servers have rolled back: all workers start again from the snapshot, together.
  // RollBack is sent before the servers' new addresses, so that a worker resends nothing void.
  void roll_back_to(std::uint64_t snapshot);

 private:
  void set_num_workers(const wire::HelloT& hello);
  // Counts the steps of a worker that reconnects to a restarted server 0, if the snapshot lacks
  // them.
  void count_steps_after_snapshot(const wire::HelloT& hello);
  void take_declaration(const wire::HelloT& hello);
  // Asks one worker for the job's declaration; later asks workers of another fingerprint for
  // theirs.
  void request_declarations();
  // Returns the snapshots that this job has begun and that the server has files of.
  std::set<std::uint64_t> snapshots_of_job(const wire::HelloT& hello) const;
  void send_declaration(int server);
  void admit(int worker);
  void send_roll_back(int worker);
  void start(int worker);
  void start_together();

  Job& job_;
  LeaseQueue& leases_;
  bool starts_together_ = true;  // no worker starts before all are ready
  // The number of the snapshot of the last roll-back, and the incarnation of server 0 since then.
  std::uint64_t rolled_back_to_ = 0;
  std::uint32_t server_0_incarnation_ = 0;
};

}  // namespace syncopate::ps
