// Makes restarted servers roll back to a snapshot. Under async a restarted server rolls back alone,
// to its newest file. Under ssp and sync all servers and workers roll back together, to the newest
// snapshot that all servers have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/registration.h"
#include "ps/coordinator/snapshots.h"
#include "ps/coordinator/text_exchange.h"

namespace syncopate::ps {

// The part of the coordinator that restores restarted servers. Used by one thread at a time.
class ServerRecovery {
 public:
  ServerRecovery(Job& job, LeaseQueue& leases, Snapshots& snapshots, Registration& registration,
                 TextExchange& exchange)
      : job_(job),
        leases_(leases),
        snapshots_(snapshots),
        registration_(registration),
        exchange_(exchange) {}

  // Handles a server's answer to RollBack: the server has restored the snapshot and serves again,
  // or its snapshot file is damaged; advance() then chooses an older snapshot.
  void on_rolled_back(int server, const wire::RollBackT& back);
  void advance();

 private:
  void roll_back_alone();
  void roll_back_together();
  void finish_roll_back();
  std::optional<std::uint64_t> newest_of_all() const;
  void send_roll_back(int server, std::uint64_t snapshot);
  void fail_without_snapshot();

  Job& job_;
  LeaseQueue& leases_;
  Snapshots& snapshots_;
  Registration& registration_;
  TextExchange& exchange_;
  std::map<int, std::uint64_t> targets_;  // for each server that rolls back: the snapshot
};

}  // namespace syncopate::ps
