// The rendezvous of the tasks of a job: rank 0 listens, the other tasks connect and send a Hello.
// When all have come and fit together, rank 0 sends the roster to every task.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/handshake.h"

namespace syncopate {

// What a task has after the rendezvous: the roster and its connections.
struct ConnectedTask {
  int index = 0;
  Roster roster;
  // Rank 0 has a connection to each other rank, in rank order, with the rosters queued but perhaps
  // not sent yet. Every other rank has one connection, to rank 0.
  std::vector<Connection> connections;
};

// Returns why the task with this hello cannot be part of the job, in one line; "" if it can.
using Objection = std::function<std::string(const Hello&)>;

// Rank 0's part. A connection that is not of this job (another nonce, another protocol, silence) is
// rejected with a warning, and the wait goes on. When the job is impossible, all connected tasks
// receive the line that is thrown: UsageError for another world size, a rank twice or out of range,
// different agreements or an objection; PeerError when a task dies, or does not come within the
// timeout. `endpoint` is for messages.
ConnectedTask accept_tasks(const Hello& hello, Listener listener, const Endpoint& endpoint,
                           std::chrono::milliseconds timeout, const Objection& objection = {});

// The part of every task but rank 0: connects and returns the roster. Throws what rank 0 sends,
// PeerError when rank 0 cannot be reached or does not answer, UsageError for an unknown host.
// listens_first: as in MembershipOptions.
ConnectedTask connect_to_rank_zero(const Hello& hello, const Endpoint& endpoint,
                                   std::chrono::milliseconds timeout,
                                   std::chrono::milliseconds listens_first);

}  // namespace syncopate
