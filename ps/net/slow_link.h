// Simulates a network link with a limited rate and a delay, and the byte streams through the link.
// Bytes that were read from the sender wait here until the link would have delivered them.
// link_forwarder.cc provides sockets and a thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syncopate {

// The speed of a task's network link, limited for an experiment. link_forwarder.h applies the
// limits between real processes, the virtual clock of bench/compare between simulated processes.
struct Link {
  double delay_seconds = 0.0;     // one way, in seconds
  double bytes_per_second = 0.0;  // of the link, in each direction; 0 for no limit
  bool is_plain() const noexcept { return delay_seconds == 0.0 && bytes_per_second == 0.0; }
};
// parse_link_delay() parses the value of --link-delay, such as "1ms", and returns seconds.
// parse_link_rate() parses the value of --link-rate, such as "1gbit", and returns bytes per second.
// They throw UsageError for invalid texts and for values out of range.
double parse_link_delay(const std::string& text);
double parse_link_rate(const std::string& text);

// One direction of a task's link, shared by all connections of the task. Bytes leave in the order
// of reading, at the link's rate, and arrive after the link's delay.
class SlowLink {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SlowLink(const Link& link);

  // Sends `bytes` bytes that were read at `now`. Returns the time at which they arrive. The result
  // is never earlier than the result of the previous call.
  Time send(Time now, std::size_t bytes);
  // Returns how many bytes a stream reads at once: as many as the link sends in about a
  // millisecond, so that connections take turns.
  std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
  // Returns how many bytes of one connection may be in the link. These are the bytes that are under
  // way at full rate, plus a reserve that keeps the link busy when the thread wakes late.
  std::size_t most_held_bytes() const noexcept { return most_held_bytes_; }

 private:
  double nanoseconds_per_byte_ = 0.0;
  std::chrono::nanoseconds delay_{0};
  std::size_t chunk_bytes_ = 0;
  std::size_t most_held_bytes_ = 0;
  Time free_{};
};

// One direction of one connection over a SlowLink. Used by one thread. The link must outlive the
// stream.
class SlowStream {
 public:
  using Time = SlowLink::Time;
  enum class End : std::uint8_t { kOpen, kClosed, kReset };

  explicit SlowStream(SlowLink& link) : link_(&link) {}

  bool wants_to_read() const noexcept {
    return end_ == End::kOpen && held_bytes_ < link_->most_held_bytes();
  }
  // Returns whether bytes are due and the receiver's socket is full. The caller then polls the
  // socket for POLLOUT.
  bool wants_to_write() const noexcept { return is_blocked_; }
  // Returns when the next bytes are due; nullopt if the stream has no bytes, or wants_to_write() is
  // true.
  std::optional<Time> due() const noexcept;

  // Reads at most one chunk, or the stream's end, from the sender; `buffer` is scratch memory.
  void read_from(int socket, std::span<char> buffer, Time now);
  // Writes the bytes that are due, as many as the receiver's socket accepts, and forwards an
  // orderly end of the stream. If the receiver is gone, drops the stream's bytes and returns false.
  bool write_to(int socket, Time now);
  // Ends the stream because the sender is gone: the stream delivers the bytes that were read
  // before, and then a reset.
  void reset(Time now);

  // delivered() returns how the stream ended for the receiver. is_lost() returns whether the
  // receiver was gone before the end.
  End delivered() const noexcept { return delivered_; }
  bool is_lost() const noexcept { return is_lost_; }

 private:
  struct Chunk {
    std::vector<char> bytes;
    Time due;
    End end = End::kOpen;  // not kOpen: this chunk is the end of the stream and has no bytes
    std::size_t written_bytes = 0;
  };

  void finish(End end, Time now);

  SlowLink* link_;
  std::deque<Chunk> chunks_;
  std::size_t held_bytes_ = 0;
  End end_ = End::kOpen;
  End delivered_ = End::kOpen;
  bool is_blocked_ = false;
  bool is_lost_ = false;
};

}  // namespace syncopate
