// Servers that were started anew go back to a snapshot: alone where workers wait for nobody, else
// all of them, to one that all have, and the workers with them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ps/coordinator/cuts.h"
#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/meeting.h"
#include "ps/coordinator/text_exchange.h"

namespace syncopate::ps {

// One thread at a time.
class ServerRecovery {
 public:
  ServerRecovery(Job& job, LeaseQueue& leases, Cuts& cuts, Meeting& meeting, TextExchange& exchange)
      : job_(job), leases_(leases), cuts_(cuts), meeting_(meeting), exchange_(exchange) {}

  // It has read the snapshot, or found it damaged.
  void hear(int server, const wire::RollBackT& back);
  void advance();

 private:
  void go_back_alone();
  void go_back_together();
  void finish_together();
  std::optional<std::uint64_t> newest_of_all() const;
  void send_back(int server, std::uint64_t cut);
  void fail_without_snapshot();

  Job& job_;
  LeaseQueue& leases_;
  Cuts& cuts_;
  Meeting& meeting_;
  TextExchange& exchange_;
  std::map<int, std::uint64_t> targets_;  // of servers under way
};

}  // namespace syncopate::ps
