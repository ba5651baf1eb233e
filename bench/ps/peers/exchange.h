// What every side of `syncopate-bench ps` has in common: a worker that pushes so many bytes to a
// server and pulls as many, one clock and one check, around the transport that is measured. The raw
// peers are built from this; so is our own side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "bench/harness/rank_group.h"

namespace syncopate::bench {

// What an exchange carries.
struct ExchangeShape {
  std::size_t bytes = 0;
  // At most so much is sent before the first of it is answered; by default what a large message of
  // ours carries.
  std::size_t message_bytes = std::size_t{1} << 20;
  std::size_t variable_bytes = 0;  // of each variable of ours; 0: all is one
  bool operator==(const ExchangeShape&) const = default;
};

struct ExchangeCommand {
  ExchangeShape shape;
  int exchanges = 0;
};
// "run BYTES EXCHANGES [MESSAGE_BYTES [VARIABLE_BYTES]]", whole f32 each. Throws UsageError.
ExchangeCommand parse_exchange_command(const std::string& text);
std::string exchange_command(const ExchangeShape& shape, int exchanges);

// Looks at what has arrived: a piece, and where it belongs. Pieces come in order, without gaps.
using Take = std::function<void(std::size_t offset_bytes, std::span<const std::byte> piece)>;

// One end of a connection: rank 0 is the worker, rank 1 the server. Both make the same calls.
// One thread only. Throws PeerError when the other end is lost or silent.
class ExchangeEnd {
 public:
  virtual ~ExchangeEnd() = default;
  // Before the first exchange at a size: everything that is not the exchange itself.
  virtual void prepare(const ExchangeShape& shape) = 0;
  // Worker: pushes the bytes; returns when as many have come back. Server: answers each chunk with
  // its own bytes as soon as it is there, as a server does that nobody else waits for.
  // outgoing: of the prepared size, the same in every exchange at that size; it stays as it is.
  virtual void exchange(std::span<const std::byte> outgoing, const Take& take) = 0;
};

// Rank 0 says {"event": "ready", ...} with `description`, then both answer `run ...` (above)
// with {"event": "steps", "seconds": [...]}: the worker's seconds of each exchange. One before them
// is not counted, one behind them is checked at both ends.
// Returns at `quit` or the end of the input. Throws PeerError for wrong bytes or a rank that is
// lost, UsageError for a command it does not know.
void serve_exchanges(RankGroup& group, ExchangeEnd& end, std::string_view description);

}  // namespace syncopate::bench
