// The bytes of all all-reduces of one rank, sent to the rank after it while those of the rank
// before it are received and added: one pass over two sockets that never waits. tcp_ring.cc gives
// it a thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "models/base/file_descriptor.h"
#include "models/tensor/sums.h"
#include "models/tensor/tensor.h"
#include "strategies/collective/tcp_ring_plan.h"

namespace syncopate {

// A neighbour's end of a connection is gone: the reason, as seen from here. Somebody may know a
// better one. Never leaves the ring.
struct LinkClosed {
  std::string reason;
};

// One all-reduce. Announced to the next rank by `header`, so that ranks which disagree about what
// they reduce find out before they add.
struct RingOperation {
  struct Header {
    std::uint32_t magic = 0x676E6952;  // "Ring"
    std::uint32_t dtype = 0;
    std::uint64_t sequence = 0;
    std::int64_t length = 0;
    std::int64_t index = 0;
    bool operator==(const Header&) const = default;
  };

  Tensor tensor;  // keeps the memory
  std::byte* data = nullptr;
  std::size_t element_bytes = 0;
  RingPlan plan;
  Header header;
  std::chrono::steady_clock::time_point begun;
};
// "all-reduce 3 (100 f32 elements at index 0)", for messages.
std::string to_string(const RingOperation::Header& header);

// One thread only, but for begun_by_previous().
class RingStream {
 public:
  static constexpr std::size_t kMostOperations = 256;
  using Operations = std::array<RingOperation, kMostOperations>;

  // Operation s lies in operations[s % kMostOperations] from its submission to its end.
  RingStream(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n,
             const Operations& operations);

  // Receives, adds and sends what it can of the operations [ended(), submitted) without waiting.
  // False when nothing moved. Throws PeerError when the previous rank reduces something else,
  // LinkClosed.
  bool step(std::uint64_t submitted);

  // Operations of which nothing is left to send or to receive; they end in order.
  std::uint64_t ended() const noexcept;
  // The next rank sees the connection closed; nothing follows.
  void end_sending() noexcept;
  // What step() waits for, for poll().
  bool wants_to_receive(std::uint64_t submitted) const noexcept;
  bool wants_to_send(std::uint64_t submitted) const noexcept;
  int to_next() const noexcept { return to_next_.get(); }
  int from_previous() const noexcept { return from_previous_.get(); }
  // Since it was made, headers included. From any thread.
  std::int64_t bytes_sent() const noexcept { return bytes_sent_.load(std::memory_order_relaxed); }
  std::int64_t bytes_received() const noexcept {
    return bytes_received_.load(std::memory_order_relaxed);
  }
  // Operations that the previous rank has begun. From any thread.
  std::uint64_t begun_by_previous() const noexcept {
    return begun_by_previous_.load(std::memory_order_acquire);
  }

 private:
  static constexpr int kMostPieces = 32;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  static constexpr int kScratchBlocks = 8;

  // A place in the stream of one direction: a header, then the blocks in wire order.
  struct Position {
    std::uint64_t operation = 0;
    bool in_header = true;
    WireOrder order;
    std::size_t done_bytes = 0;  // of the header or the block
  };
  struct Pieces {
    std::array<iovec, kMostPieces> vectors;
    int count = 0;
    std::size_t bytes = 0;
    void add(std::byte* data, std::size_t size) noexcept;
    bool full() const noexcept { return count == kMostPieces || bytes >= kMostBytes; }
  };

  const RingOperation& operation(const Position& at) const noexcept {
    return operations_[at.operation % kMostOperations];
  }
  // Remainder modulo n of the block at step 0.
  std::int64_t send_remainder() const noexcept { return rank_ - 1; }
  std::int64_t receive_remainder() const noexcept { return rank_ - 2; }
  BlockRange block(const Position& at, std::int64_t remainder) const noexcept;
  std::span<std::byte> block_bytes(const Position& at, std::int64_t remainder) const noexcept;
  void advance(Position& at, std::int64_t remainder) const noexcept;
  bool is_partial(const Position& at) const noexcept { return at.order.place().step < n_ - 1; }
  bool may_send(const Position& at) const noexcept;
  std::byte* scratch_block(int ahead) noexcept;

  Pieces pieces_to_send(std::uint64_t submitted) const noexcept;
  bool send(std::uint64_t submitted);
  bool receive(std::uint64_t submitted);
  void sent(std::size_t bytes) noexcept;
  void received(std::size_t bytes);
  void finish_received_piece();

  FileDescriptor to_next_;
  FileDescriptor from_previous_;
  const int rank_;
  const int n_;
  const Operations& operations_;
  const SumKernels& kernels_;
  Position send_;
  Position receive_;
  RingOperation::Header received_header_;
  Tensor scratch_;        // kScratchBlocks partial sums on their way in, used in turn
  int scratch_next_ = 0;  // the one that receive_ fills if it is at a partial sum
  std::atomic<std::uint64_t> begun_by_previous_{0};
  std::atomic<std::int64_t> bytes_sent_{0};
  std::atomic<std::int64_t> bytes_received_{0};
};

}  // namespace syncopate
