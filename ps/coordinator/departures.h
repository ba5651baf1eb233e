// Who goes, in which way, and what becomes of the job then; and whom it cannot go on without.
#pragma once

#include <optional>
#include <string>

#include "ps/coordinator/cuts.h"
#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"

namespace syncopate::ps {

// One thread at a time.
class Departures {
 public:
  Departures(Job& job, LeaseQueue& leases, Cuts& cuts) : job_(job), leases_(leases), cuts_(cuts) {}

  // Silent, or ended. Workers in step cannot go on without it.
  void lose_worker(int worker, const std::string& reason);
  void lose_server(int server, const std::string& reason);
  void worker_fails(int worker, const std::string& reason);
  void worker_leaves(int worker);
  // Somebody else takes its place, if it is still there.
  void drop_worker(int worker, const std::string& reason);
  void drop_server(int server);
  // Nobody waits any longer for those of awaited(); `patience`: "within 120 s at node3:13565".
  void give_up(const std::string& patience);
  // After the last cut the workers leave, then the servers.
  void advance();

  // "worker 1, server 2".
  std::optional<std::string> awaited() const;

 private:
  bool is_needed(int worker) const;

  Job& job_;
  LeaseQueue& leases_;
  Cuts& cuts_;
};

}  // namespace syncopate::ps
