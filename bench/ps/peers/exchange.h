// Defines the exchange that all sides of `syncopate-bench ps` measure: a worker pushes a number of
// bytes to a server and pulls an equal number of bytes. Also measures and checks the exchanges of
// peers, and formats the results.
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
  // The size of a chunk: the number of bytes that a worker sends before the server begins to
  // answer. The default is the size of a large message of this program's parameter server.
  std::size_t message_bytes = std::size_t{1} << 20;
  // The size in bytes of each variable in the jobs of this program; 0: one variable holds all
  // bytes.
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

// A function that receives one piece of the exchanged data and its offset. The pieces are in order
// and without gaps.
using Take = std::function<void(std::size_t offset_bytes, std::span<const std::byte> piece)>;

// One end of a connection of a peer. Rank 0 is the worker and rank 1 the server; both make the same
// calls. One thread only. The functions throw PeerError when the other end is lost or does not
// answer in time.
class ExchangeEnd {
 public:
  virtual ~ExchangeEnd() = default;
  // Prepares for exchanges of this shape, for example allocates buffers. Called before the first
  // exchange of this shape.
  virtual void prepare(const ExchangeShape& shape) = 0;
  // Runs one exchange. The worker sends the chunks of `outgoing`. As soon as a chunk has arrived,
  // the server answers with the same part of its own `outgoing`. Each rank passes the received
  // bytes to `take` and returns when it has received as many bytes as `outgoing` has. `outgoing`
  // has the size that was passed to prepare(), and its contents are equal in every exchange at this
  // size.
  virtual void exchange(std::span<const std::byte> outgoing, const Take& take) = 0;
};

// Runs one rank of a peer. Rank 0 prints {"event": "ready", ...} with `description`. Both ranks
// then serve the commands "run ..." of parse_exchange_command(). Rank 0 answers {"event": "steps",
// "seconds": [...]} with the worker's seconds of each exchange. For each command, one exchange that
// is not timed precedes the timed exchanges, and one exchange in which both ends check the received
// bytes follows them. Returns at `quit` or at the end of the input. Throws PeerError for wrong
// bytes or a lost rank, and UsageError for an unknown command.
void serve_exchanges(RankGroup& group, ExchangeEnd& end, std::string_view description);

// Measures exchanges of one size by all contestants in turns. Rounds::sides[s] has the numbers of
// contestants[s].
Rounds take_exchange_rounds(std::vector<Contestant>& contestants, const ExchangeShape& shape,
                            int rounds, double seconds_per_turn);

// Returns a table with a heading and one row per side. The columns are: median, p50 and p99 of the
// seconds; GB/s in each direction; variables per second of all workers, or messages per second if
// there are no variables; and ratio_cell().
std::string exchange_table(const std::string& size, const ExchangeShape& shape,
                           const std::vector<Contestant>& contestants, const Rounds& rounds);
// Returns the numbers of exchange_table(), with the numbers of every round, as JSON.
nlohmann::json exchange_json(const ExchangeShape& shape, const std::vector<Contestant>& contestants,
                             const Rounds& rounds);

}  // namespace syncopate::bench
