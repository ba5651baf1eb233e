// Small blocking operations over the small_to_next and small_from_previous connections of the ring
// (RingLinks): all-gather, broadcast, and sending the reason why a rank gives up. The ranks forward
// such a reason along the ring, so that every rank can name the rank that was late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "strategies/collective/progress_deadline.h"
#include "strategies/collective/ring_all_reduce.h"
#include "strategies/collective/work_progress.h"

namespace syncopate {

// Thrown when the wait for the previous rank exceeds the timeout. Only the ring's source files
// throw and catch it.
struct LateRank {
  std::string what;  // name of the operation
  // True if the previous rank has already sent data of the operation. The previous rank then waits
  // itself: the late rank is a rank before it in the ring.
  bool previous_has_started = false;
};

// All-gather, broadcast and reasons of one rank. Used by the caller's thread only.
class RingMessages {
 public:
  RingMessages(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n);

  // These functions do the same as the functions of Collective with these names. They throw
  // PeerError if `abort_reason` is set or the ranks call different operations. They throw
  // LinkClosed if a connection is closed, and LateRank if the deadline passes.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  const AbortReason& abort_reason, ProgressDeadline& deadline);
  void broadcast(std::span<std::byte> bytes, int root, const AbortReason& abort_reason,
                 ProgressDeadline& deadline);

  // Sends the next rank the reason why this rank gives up, and closes the connection to the next
  // rank. Does not block. Only the first call has an effect.
  void send_reason(std::string_view reason) noexcept;
  // Waits for a reason from the previous rank, skips other messages, and returns the reason.
  // Returns nullopt if no reason comes before the deadline, or before `abort_reason` is set.
  std::optional<std::string> await_reason(const AbortReason& abort_reason,
                                          const Deadline& deadline);

 private:
  struct Header {
    std::uint32_t magic = 0x4D6E6952;  // the ASCII text "RinM"
    std::uint32_t kind = 0;
    std::uint64_t sequence = 0;
    std::uint64_t root = 0;         // the rank that sends a broadcast
    std::uint64_t total_bytes = 0;  // length of a broadcast, or of one rank's part of an all-gather
    std::uint64_t message_bytes = 0;  // length of this message's body
  };
  // The messages that an operation sends, or those that it receives. `memory` is divided into
  // num_parts parts; message i carries part (first + step * i) modulo num_parts.
  struct MessageSequence {
    std::span<std::byte> memory;
    std::size_t part_bytes = 0;
    std::int64_t num_parts = 0;
    std::int64_t first = 0;
    int step = 1;
    std::int64_t count = 0;
    std::span<std::byte> part(std::int64_t i) const noexcept;
  };
  // A blocking operation as this rank sees it: what it sends and what it receives.
  struct Operation {
    Header header;  // message_bytes is set for each message
    MessageSequence send;
    MessageSequence receive;
    // This rank may send message i (from 0) once it has received i + 1 - head_start messages.
    std::int64_t head_start = 0;
  };

  void run(const Operation& operation, const AbortReason& abort_reason, ProgressDeadline& deadline);
  bool send_some(const Operation& operation);
  bool receive_some(const Operation& operation);
  bool wants_to_send(const Operation& operation) const noexcept;
  bool wants_to_receive(const Operation& operation) const noexcept;
  void check_header(const Operation& operation);
  std::string previous() const;
  static std::string describe(const Header& header);

  FileDescriptor to_next_;
  FileDescriptor from_previous_;
  const int rank_;
  const int n_;
  std::uint64_t sequence_ = 0;
  bool reason_sent_ = false;
  // Progress of the current operation: the numbers of complete messages, and the bytes of the
  // message in transfer, header included.
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::size_t sent_bytes_ = 0;
  std::size_t received_bytes_ = 0;
  Header header_in_;
};

}  // namespace syncopate
