// The ring all-reduce of one rank: which elements it sends and receives, their order, and the
// sendmsg(2) and recvmsg(2) calls. ring_collective.cc provides the thread, ring_links.h the two
// sockets.
//
// The algorithm with n ranks is described with these terms, which the names in the code use too.
// - A *chunk* is kBlockElements consecutive elements of the arena, cut off at the ends of the
//   tensor. Its *residue* is the number of the chunk in the arena, modulo n.
// - A *segment* is n consecutive chunks, one chunk of every residue. The ring all-reduces each
//   segment by itself, in 2n - 2 *steps*.
// - In step k, rank r sends the chunk of residue r - 1 - k to the next rank, r + 1, and receives
//   the chunk of residue r - 2 - k from the previous rank, r - 1.
// - Steps 0 to n - 2 are the *reduce-scatter*. The received chunk is a partial sum; the rank adds
//   its own elements to the chunk, and sends the result in the next step. After these steps rank r
//   has the complete sum of the chunk of residue r.
// - Steps n - 1 to 2n - 3 are the *all-gather*. The received chunk is a complete sum; the rank
//   stores the chunk, and sends it in the next step.
// So the sum of chunk b starts with the elements of rank b + 1 and ends with the elements of rank
// b, both modulo n, as collective.h promises. The order does not depend on the tensor that contains
// the chunk.
//
// Segments are pipelined (StreamOrder). Consecutive all-reduces are pipelined too: an all-reduce
// starts while the previous one is still in progress. A header announces each all-reduce.
// Source: Gibiansky 2017, "Bringing HPC techniques to deep learning".
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

namespace syncopate {

// A chunk: elements [begin, begin + count) of a tensor. `count` is 0 if the tensor has no such
// chunk.
struct ChunkRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

// Divides a tensor into segments and chunks. Every rank gets the same result, which follows from
// the arguments of the constructor.
class RingPartition {
 public:
  RingPartition() = default;
  // The tensor has `length` elements; its first element is element `index` of the arena. n >= 2.
  RingPartition(std::int64_t index, std::int64_t length, int n);

  std::int64_t num_segments() const noexcept { return num_segments_; }
  int num_steps() const noexcept { return 2 * n_ - 2; }
  // Returns the chunk with this residue in a segment. The residue is taken modulo n, and may be
  // negative.
  ChunkRange chunk(std::int64_t segment, std::int64_t residue) const noexcept;

 private:
  std::int64_t index_ = 0;
  std::int64_t length_ = 0;
  std::int64_t first_chunk_ = 0;  // number in the arena of the tensor's first chunk
  std::int64_t num_segments_ = 0;
  int n_ = 2;
};

// The order of the chunks of one all-reduce. A rank sends the chunks in this order, and the next
// rank receives them in this order. For every time t = 0, 1, ..., the stream contains step k of
// segment t - kSegmentsApart * k for k = 0, 1, .... A step needs the chunk that was received in the
// previous step of the same segment. That chunk was sent kSegmentsApart times earlier, so the
// socket rarely waits for it.
class StreamOrder {
 public:
  struct Position {
    std::int64_t segment = 0;
    int step = 0;
  };

  StreamOrder() = default;
  StreamOrder(std::int64_t num_segments, int num_steps) noexcept;

  bool at_end() const noexcept { return time_ >= end_time_; }
  Position position() const noexcept { return {time_ - segments_apart_ * step_, step_}; }
  void advance() noexcept;
  // Returns whether the chunk at `position` comes before the current chunk of the stream,
  // position().
  bool is_past(Position position) const noexcept;

  static constexpr std::int64_t kSegmentsApart = 4;

 private:
  void begin_time() noexcept;

  std::int64_t num_segments_ = 0;
  std::int64_t segments_apart_ = 1;
  std::int64_t time_ = 0;
  std::int64_t end_time_ = 0;
  int num_steps_ = 0;
  int step_ = 0;
};

// Thrown when the neighbour has closed its connection, or the connection broke. `reason` is what
// this rank saw; another rank may know the cause. Only the ring's source files throw and catch it.
struct LinkClosed {
  std::string reason;
};

// One all-reduce. `header` is sent to the next rank before the first chunk, so that ranks notice
// before the first addition if they call different operations.
struct RingOperation {
  struct Header {
    std::uint32_t magic = 0x676E6952;  // the ASCII text "Ring"
    std::uint32_t dtype = 0;
    std::uint64_t sequence = 0;
    std::int64_t length = 0;
    std::int64_t index = 0;
    bool operator==(const Header&) const = default;
  };

  Tensor tensor;  // keeps the memory of `data` alive
  std::byte* data = nullptr;
  std::size_t element_bytes = 0;
  RingPartition partition;
  Header header;
  std::chrono::steady_clock::time_point begun;
};
// Returns the operation's name for messages, such as "all-reduce 3 (100 f32 elements at index 0)".
std::string to_string(const RingOperation::Header& header);

// Sends, receives and adds the bytes of one rank. One thread only, except where a function says
// otherwise.
class RingAllReduce {
 public:
  static constexpr std::size_t kMaxOperations = 256;
  using Operations = std::array<RingOperation, kMaxOperations>;

  // Makes the all-reduce of rank `rank` of `n`, over the connections to the next and from the
  // previous rank. `operations` is used as a ring buffer: operation number s must stay in
  // operations[s % kMaxOperations] from its submission to its end.
  RingAllReduce(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n,
                const Operations& operations);

  // Receives, adds and sends as many bytes of the operations [ended(), submitted) as it can
  // without blocking. Returns false when no byte was moved. Throws PeerError if the previous rank
  // reduces another tensor. Throws LinkClosed if a connection is closed.
  bool progress(std::uint64_t submitted);

  // Returns the number of operations that are complete on this rank. Operations end in order.
  std::uint64_t ended() const noexcept;
  // Closes the sending direction of the connection to the next rank, which then reads the end of
  // the stream.
  void shut_down_sending() noexcept;
  // These functions return whether progress() has bytes to receive or to send. The caller sets the
  // events of poll(2) accordingly.
  bool wants_to_receive(std::uint64_t submitted) const noexcept;
  bool wants_to_send(std::uint64_t submitted) const noexcept;
  int to_next() const noexcept { return to_next_.get(); }
  int from_previous() const noexcept { return from_previous_.get(); }
  // bytes_sent() and bytes_received() return the total bytes since construction, including headers.
  // Any thread may call them.
  std::int64_t bytes_sent() const noexcept { return bytes_sent_.load(std::memory_order_relaxed); }
  std::int64_t bytes_received() const noexcept {
    return bytes_received_.load(std::memory_order_relaxed);
  }
  // Returns the number of all-reduces that the previous rank has begun. Any thread may call it.
  std::uint64_t begun_by_previous() const noexcept {
    return begun_by_previous_.load(std::memory_order_acquire);
  }

 private:
  static constexpr int kMaxVectors = 32;
  static constexpr std::size_t kMaxCallBytes = std::size_t{1} << 20;
  static constexpr int kScratchChunks = 8;

  // A position in the byte stream of one direction: a byte of an operation's header or of a chunk.
  struct Cursor {
    std::uint64_t operation = 0;
    bool in_header = true;
    StreamOrder order;
    std::size_t done_bytes = 0;  // of the current header or chunk
  };
  // The memory that one sendmsg() or recvmsg() call reads or writes.
  struct IoVectors {
    std::array<iovec, kMaxVectors> vectors;
    int count = 0;
    std::size_t bytes = 0;
    void add(std::byte* data, std::size_t size) noexcept;
    bool full() const noexcept { return count == kMaxVectors || bytes >= kMaxCallBytes; }
  };

  const RingOperation& operation(const Cursor& at) const noexcept {
    return operations_[at.operation % kMaxOperations];
  }
  // These functions return the residues of the chunks that this rank sends and receives in step 0.
  std::int64_t send_residue() const noexcept { return rank_ - 1; }
  std::int64_t receive_residue() const noexcept { return rank_ - 2; }
  ChunkRange chunk(const Cursor& at, std::int64_t residue) const noexcept;
  std::span<std::byte> chunk_bytes(const Cursor& at, std::int64_t residue) const noexcept;
  void advance(Cursor& at, std::int64_t residue) const noexcept;
  // Returns whether the position belongs to a step of the reduce-scatter, in which chunks are
  // partial sums.
  bool is_partial_sum(const Cursor& at) const noexcept { return at.order.position().step < n_ - 1; }
  bool may_send(const Cursor& at) const noexcept;
  std::byte* scratch_chunk(int ahead) noexcept;

  IoVectors vectors_to_send(std::uint64_t submitted) const noexcept;
  IoVectors vectors_to_receive(std::uint64_t submitted) noexcept;
  bool send(std::uint64_t submitted);
  bool receive(std::uint64_t submitted);
  void on_sent(std::size_t bytes) noexcept;
  void on_received(std::size_t bytes);
  void finish_received();
  void check_header();
  void add_partial_sum();

  FileDescriptor to_next_;
  FileDescriptor from_previous_;
  const int rank_;
  const int n_;
  const Operations& operations_;
  const SumKernels& kernels_;
  Cursor send_;
  Cursor receive_;
  RingOperation::Header received_header_;
  Tensor scratch_;        // cyclic buffer of kScratchChunks partial sums
  int scratch_next_ = 0;  // index of the chunk of scratch_ that is filled next
  std::atomic<std::uint64_t> begun_by_previous_{0};
  std::atomic<std::int64_t> bytes_sent_{0};
  std::atomic<std::int64_t> bytes_received_{0};
};

}  // namespace syncopate
