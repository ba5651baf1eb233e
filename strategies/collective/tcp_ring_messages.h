// The ring's second pair of connections, for what is small and blocking: all_gather, broadcast, and
// the reason why a rank gave up, which travels along the ring so that all ranks can name the one
// that did not come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "strategies/collective/end_reason.h"
#include "strategies/collective/tcp_ring_stream.h"

namespace syncopate {

// The wait for the previous rank lasted longer than patience: what was waited for, and whether the
// previous rank has come itself (then it waits for another one). Never leaves the ring.
struct LateRank {
  std::string what;
  bool previous_has_come = false;
};

// One thread only: the caller's.
class RingMessages {
 public:
  RingMessages(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n);

  // As Collective's. Throws PeerError (`end` was set; the ranks disagree), LinkClosed; LateRank
  // when `patience` is over.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all, const EndReason& end,
                  const Deadline& patience);
  void broadcast(std::span<std::byte> bytes, int root, const EndReason& end,
                 const Deadline& patience);

  // Tells the next rank why we give up, as far as it goes without waiting, and closes the way to
  // it. Only the first call does.
  void send_reason(std::string_view reason) noexcept;
  // The reason that the previous rank sent, if one comes before the deadline or `end`; messages
  // before it are passed over.
  std::optional<std::string> await_reason(const EndReason& end, const Deadline& deadline);

 private:
  struct Header {
    std::uint32_t magic = 0x4D6E6952;  // "RinM"
    std::uint32_t kind = 0;
    std::uint64_t sequence = 0;
    std::uint64_t root = 0;           // of a broadcast
    std::uint64_t total_bytes = 0;    // of the whole operation, per rank for all_gather
    std::uint64_t message_bytes = 0;  // that follow
  };
  // Messages that are pieces of one block of memory, from piece `first` in the direction of `step`,
  // round its end.
  struct Train {
    std::span<std::byte> memory;
    std::size_t piece_bytes = 0;
    std::int64_t pieces = 0;  // of the memory
    std::int64_t first = 0;
    int step = 1;
    std::int64_t count = 0;
    std::span<std::byte> piece(std::int64_t i) const noexcept;
  };
  struct Exchange {
    Header header;  // but for message_bytes
    Train send;
    Train receive;
    std::int64_t head_start = 0;  // message i leaves when i + 1 - head_start have arrived
  };

  void run(const Exchange& asked, const EndReason& end, const Deadline& patience);
  bool send_some(const Exchange& exchange);
  bool receive_some(const Exchange& exchange);
  bool wants_to_send(const Exchange& exchange) const noexcept;
  bool wants_to_receive(const Exchange& exchange) const noexcept;
  void check_header(const Exchange& exchange);
  std::string previous() const;
  static std::string describe(const Header& header);

  FileDescriptor to_next_;
  FileDescriptor from_previous_;
  const int rank_;
  const int n_;
  std::uint64_t sequence_ = 0;
  bool reason_sent_ = false;
  // Of the exchange under way: whole messages, and bytes of the one at hand, its header included.
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::size_t sent_bytes_ = 0;
  std::size_t received_bytes_ = 0;
  Header header_in_;
};

}  // namespace syncopate
