// Registers tasks, from a task's Hello to Start: compares the declarations of the tasks, sends
// Welcome, waits for the initial values, and sends Start. At the beginning all tasks start
// together; tasks that come later start one by one. ps/wire/PROTOCOL.md defines the messages
// ("Rules, Join").
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"

namespace syncopate::ps {

// The part of the coordinator that registers tasks. Used by one thread at a time. Precondition of
// all calls with a Hello: the caller has removed the previous incarnation of the Hello's sender.
class Registration {
 public:
  Registration(Job& job, LeaseQueue& leases) : job_(job), leases_(leases) {}

  // on_new_worker() and on_new_server() handle a Hello of a new incarnation, which find_refusal()
  // has accepted.
  void on_new_worker(const wire::HelloT& hello);
  // Handles the repeated Hello, with the declaration, of a worker that is not admitted yet. Returns
  // false if the Hello comes from another process.
  bool on_repeated_hello(const wire::HelloT& hello);
  void on_new_server(const wire::HelloT& hello);
  // on_worker_reconnect() and on_server_reconnect() handle a Hello of a known incarnation over a
  // new connection.
  void on_worker_reconnect(const wire::HelloT& hello);
  // Logs, once after a restart of server 0, how many steps are trained again. Called when all known
  // workers have reconnected, or have had enough time to.
  void report_steps_after_snapshot();
  void on_server_reconnect(const wire::HelloT& hello);

  void on_declared(int server, const wire::DeclaredT& declared);
  void on_initialised(int worker, const wire::InitialisedT& initialised);
  void on_ready(int worker, const wire::ReadyT& ready);
  // Admits and starts the workers that can be admitted and started now.
  void advance();
  // Makes all workers start again from the snapshot, together. Called when all servers have rolled
  // back. RollBack is sent before the servers' new addresses, so that a worker drops its open
  // requests before it connects again.
  void roll_back_to(std::uint64_t snapshot);

 private:
  void set_num_workers(const wire::HelloT& hello);
  // Counts the steps of a reconnecting worker that are not in the snapshot which server 0 has
  // restored.
  void count_steps_after_snapshot(const wire::HelloT& hello);
  void take_declaration(const wire::HelloT& hello);
  // Asks one worker for its declaration, which becomes the job's declaration. Later asks each
  // worker that has another fingerprint than the job for its declaration.
  void request_declarations();
  // Returns the snapshots of this job that the server has as files.
  std::set<std::uint64_t> snapshots_of_job(const wire::HelloT& hello) const;
  void send_declaration(int server);
  void admit(int worker);
  void send_roll_back(int worker);
  void start(int worker);
  void start_together();

  Job& job_;
  LeaseQueue& leases_;
  bool starts_together_ = true;  // no worker starts before all are ready
  // The number of the snapshot that the servers last rolled back to, and the incarnation of server
  // 0 after the roll-back.
  std::uint64_t rolled_back_to_ = 0;
  std::uint32_t server_0_incarnation_ = 0;
};

}  // namespace syncopate::ps
