// Makes the raw transports that `syncopate-bench ps` measures beside our parameter server: ZeroMQ,
// TCP and shared memory.
#pragma once

#include <memory>

#include "bench/ps/peers/exchange.h"

namespace syncopate::bench {

// A transport of ZeroMQ: connects a DEALER (worker) and a ROUTER (server) over TCP on loopback.
// Frames have the size of a chunk and are sent without a copy. The receiver reads from the frames.
// With `copies_out`, the worker first copies them into one block, as a worker that computes with
// the values must. Throws PeerError.
std::unique_ptr<ExchangeEnd> make_zeromq_end(RankGroup& group, bool copies_out);

// Opens a TCP connection over loopback with congestion control `reno`. The worker receives in
// place. The server receives into a buffer of one chunk, where a real server would apply it. Throws
// PeerError.
std::unique_ptr<ExchangeEnd> make_tcp_end(RankGroup& group);

// Exchanges data through a shared segment that both ends map. The sender copies in and the receiver
// copies out, in both directions. Throws PeerError.
std::unique_ptr<ExchangeEnd> make_segment_end(RankGroup& group);

}  // namespace syncopate::bench
