// The raw transports: each is one row of the table in ps_peers.cc.
#pragma once

#include <memory>

#include "bench/ps/peers/exchange.h"

namespace syncopate::bench {

// DEALER (worker) and ROUTER over TCP on loopback, frames of a chunk, sent without a copy. What
// arrives is taken from its frames; with `copies_out` the worker copies it into one block first, as
// one does that computes with it. Throws PeerError.
std::unique_ptr<ExchangeEnd> make_zeromq_end(RankGroup& group, bool copies_out);

// A TCP connection over loopback, with reno. The worker receives in place, the server into a buffer
// of a chunk, where a server would use it up. Throws PeerError.
std::unique_ptr<ExchangeEnd> make_tcp_end(RankGroup& group);

// Copies through a segment that both map: in and out again, both ways. Throws PeerError.
std::unique_ptr<ExchangeEnd> make_segment_end(RankGroup& group);

}  // namespace syncopate::bench
