// How tasks come into the job: hello, declaration, welcome, first values, start; at the beginning
// together, later one by one. Source of the flow: wire/PROTOCOL.md, "Meeting".
#pragma once

#include <cstdint>

#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"

namespace syncopate::ps {

// One thread at a time. Whoever the callers take the place of has been dealt with before.
class Meeting {
 public:
  Meeting(Job& job, LeaseQueue& leases) : job_(job), leases_(leases) {}

  // Hellos that have no reason to be refused.
  void worker_calls(const wire::HelloT& hello);
  void server_calls(const wire::HelloT& hello);
  // The same incarnation, over another connection.
  void worker_calls_again(const wire::HelloT& hello);
  void server_calls_again(const wire::HelloT& hello);

  void declared(int server, const wire::DeclaredT& declared);
  void initialised(int worker, const wire::InitialisedT& initialised);
  void ready(int worker, const wire::ReadyT& ready);
  // Welcomes and starts those that can be.
  void advance();
  // All servers went back to a cut: whoever is there begins again from it, all at once. They hear
  // so before they hear where the servers are now, and send nothing again that belongs to the past.
  void go_back_to(std::uint64_t cut);

 private:
  void learn_size(const wire::HelloT& hello);
  void declare_to(int server);
  void welcome(int worker);
  void send_back(int worker);
  void start(int worker);
  void start_together();

  Job& job_;
  LeaseQueue& leases_;
  bool starts_together_ = true;  // not before all are ready
  // The cut that all servers went back to, and server 0's incarnation since then.
  std::uint64_t back_at_ = 0;
  std::uint32_t back_as_ = 0;
};

}  // namespace syncopate::ps
