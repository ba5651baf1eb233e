// The rendezvous of the tasks of a job. Rank 0 listens; the other tasks connect and send a Hello.
// When all tasks have connected and fit together, rank 0 sends the roster, the list of all tasks,
// to every task.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/handshake.h"

namespace syncopate {

// The result of the rendezvous for one task.
struct ConnectedTask {
  int index = 0;
  Roster roster;
  // On rank 0, a connection to each other rank, in rank order. On each of these connections, the
  // frame with the roster is queued and may not have been sent yet. On any other rank, one
  // connection to rank 0.
  std::vector<Connection> connections;
};

// A function that returns why the task with this hello cannot be part of the job, in one line; ""
// if the task can be part of the job.
using Objection = std::function<std::string(const Hello&)>;

// The rendezvous on rank 0. Rejects, with a warning, a connection that is not of this job (another
// nonce, another protocol, silence), and waits for further tasks. `endpoint` is used in messages.
// Throws UsageError if world sizes or agreements differ, a rank occurs twice or is out of range, or
// `objection` returns a text. Throws PeerError if a task dies, or does not connect within the
// timeout. All connected tasks receive and throw the same line.
ConnectedTask accept_tasks(const Hello& hello, Listener listener, const Endpoint& endpoint,
                           std::chrono::milliseconds timeout, const Objection& objection = {});

// The rendezvous on every other rank: connects to rank 0 and waits for the roster. Throws the error
// that rank 0 sends. Throws PeerError if rank 0 cannot be reached or does not answer. Throws
// UsageError for an unknown host. `listens_first`: see MembershipOptions.
ConnectedTask connect_to_rank_zero(const Hello& hello, const Endpoint& endpoint,
                                   std::chrono::milliseconds timeout,
                                   std::chrono::milliseconds listens_first);

}  // namespace syncopate
