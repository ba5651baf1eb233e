// How the tasks of a job come together: rank 0 waits, the others call it and say hello; when all
// have come and fit together, everybody gets the roster.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/hello.h"

namespace syncopate {

struct Meeting {
  int index = 0;
  Roster roster;
  // Of rank 0: to rank 1, rank 2, ...; the rosters are queued in them. Of the others: to rank 0.
  std::vector<Connection> connections;
};

// Why the task that says hello cannot be of this job, in one line; "": it can.
using Objection = std::function<std::string(const Hello&)>;

// Rank 0's part. Whoever is not of this job (other nonce, other language, silence) is turned away
// with a warning and the waiting goes on. When the job cannot be, all who have come are told the
// line that is thrown: UsageError (another world size, a rank twice or out of range, agreements,
// what `objection` says), PeerError (a task died, or did not come within `patience`). `endpoint` is
// for messages.
Meeting wait_for_callers(const Hello& hello, Listener listener, const Endpoint& endpoint,
                         std::chrono::milliseconds patience, const Objection& objection = {});

// The others' part. Throws what rank 0 says, PeerError when it cannot be reached or falls silent,
// UsageError for an unknown host.
Meeting call_rank_zero(const Hello& hello, const Endpoint& endpoint,
                       std::chrono::milliseconds patience);

}  // namespace syncopate
