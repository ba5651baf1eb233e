// Handles tasks that leave, fail or are lost, and determines which tasks the job needs to continue.
#pragma once

#include <optional>
#include <string>

#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/snapshots.h"

namespace syncopate::ps {

// The part of the coordinator that handles lost and failing tasks. Used by one thread at a time.
class FailureHandling {
 public:
  FailureHandling(Job& job, LeaseQueue& leases, Snapshots& snapshots)
      : job_(job), leases_(leases), snapshots_(snapshots) {}

  // Handle the loss of a task. Called when the task's timeout has passed, or the task's process has
  // ended. A synchronous job fails when a worker is lost. A lost server may reconnect until
  // on_server_lost() is called a second time for this server.
  void on_worker_lost(int worker, const std::string& reason);
  void on_server_lost(int server, const std::string& reason);
  void on_worker_failed(int worker, const wire::FailingT& failing);
  void on_worker_left(int worker);
  // Remove the previous incarnation of a worker or a server, if it is still present. Called when a
  // new incarnation registers.
  void remove_worker(int worker, const std::string& reason);
  void remove_server(int server);
  // Fails the job because the rendezvous timeout has passed. `waited` is the end of the error
  // message, such as "within 120 s at node3:13565".
  void fail_missing(const std::string& waited);
  // Ends the job once the final snapshot is done: first the workers leave, then the servers.
  void advance();

  // Returns the missing tasks without which the job cannot continue, such as "worker 1, server 2";
  // nullopt if no task is missing.
  std::optional<std::string> missing_tasks() const;

 private:
  bool is_needed(int worker) const;

  Job& job_;
  LeaseQueue& leases_;
  Snapshots& snapshots_;
};

}  // namespace syncopate::ps
