// Defines an exchange, which all sides of `syncopate-bench ps` have in common: a worker pushes a
// number of bytes to a server and pulls an equal number. The clock and the check around the raw
// transports are here too, and the tables of the results.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "bench/harness/contest.h"
#include "bench/harness/rank_group.h"

namespace syncopate::bench {

// Describes the data of one exchange.
struct ExchangeShape {
  std::size_t bytes = 0;
  // The size of a chunk: how many bytes a worker may send before the server begins to answer. The
  // default is the size of a large message of our parameter server.
  std::size_t message_bytes = std::size_t{1} << 20;
  // Size of each variable of our side in bytes; with 0, one variable holds all.
  std::size_t variable_bytes = 0;
  bool operator==(const ExchangeShape&) const = default;
};

struct ExchangeCommand {
  ExchangeShape shape;
  int exchanges = 0;
};
// Parses "run BYTES EXCHANGES [MESSAGE_BYTES [VARIABLE_BYTES]]". Sizes are multiples of 4 bytes.
// Throws UsageError.
ExchangeCommand parse_exchange_command(const std::string& text);
std::string exchange_command(const ExchangeShape& shape, int exchanges);

// Receives one piece of the exchanged data and its offset. Pieces arrive in order, without gaps.
using Take = std::function<void(std::size_t offset_bytes, std::span<const std::byte> piece)>;

// One end of a connection. Rank 0 is the worker, rank 1 the server; both make the same calls. One
// thread only. Throws PeerError when the other end is lost or does not answer in time.
class ExchangeEnd {
 public:
  virtual ~ExchangeEnd() = default;
  // Sets up exchanges of one size, such as their buffers. Called before the first of them.
  virtual void prepare(const ExchangeShape& shape) = 0;
  // The worker pushes `outgoing` and returns when an equal number of bytes has come back. The
  // server answers each chunk with its own bytes as soon as the chunk has arrived. `outgoing` has
  // the prepared size and is not modified; its contents are equal in every exchange at that size.
  virtual void exchange(std::span<const std::byte> outgoing, const Take& take) = 0;
};

// Rank 0 prints {"event": "ready", ...} with `description`. Both ranks then serve `run ...`
// (above). Rank 0 answers {"event": "steps", "seconds": [...]} with the worker's seconds of each
// exchange. One uncounted exchange precedes them, and one exchange after them is checked at both
// ends. Returns at `quit` or at the end of the input. Throws PeerError for wrong bytes or a lost
// rank, UsageError for an unknown command.
void serve_exchanges(RankGroup& group, ExchangeEnd& end, std::string_view description);

// Measures exchanges of one size by all contestants in turns. Rounds::sides[s] is contestant s's.
Rounds take_exchange_rounds(std::vector<Contestant>& contestants, const ExchangeShape& shape,
                            int rounds, double seconds_per_turn);

// Formats a heading and one row per side: median, p50 and p99 of the seconds, GB/s in each
// direction, variables per second (messages if there are no variables) of all workers, and the best
// peer's time divided by ours (ratio_cell).
std::string exchange_table(const std::string& size, const ExchangeShape& shape,
                           const std::vector<Contestant>& contestants, const Rounds& rounds);
// Returns the numbers of exchange_table with all rounds, as JSON.
nlohmann::json exchange_json(const ExchangeShape& shape, const std::vector<Contestant>& contestants,
                             const Rounds& rounds);

}  // namespace syncopate::bench
