// A network link with a limited rate and a delay, and the byte streams through it: bytes that have
// been read wait here until the link would have delivered them. link_forwarder.cc provides sockets
// and a thread.
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

// The speed of a task's network link where it is limited for an experiment: by link_forwarder.h
// between real processes, by the virtual clock of bench/compare between simulated ones.
struct Link {
  double delay_seconds = 0.0;     // one way, in seconds
  double bytes_per_second = 0.0;  // of the link, in each direction; 0: no limit
  bool is_plain() const noexcept { return delay_seconds == 0.0 && bytes_per_second == 0.0; }
};
// Parse the values of --link-delay, such as "1ms", and --link-rate, such as "1gbit". The results
// are seconds and bytes per second. Throw UsageError, also for values out of range.
double parse_link_delay(const std::string& text);
double parse_link_rate(const std::string& text);

// One direction of a task's link, shared by all its connections. Bytes leave one after another at
// the link's rate, in the order of reading, and arrive `delay` later.
class SlowLink {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SlowLink(const Link& link);

  // Returns the time at which `bytes` more bytes, read at `now`, arrive over the link. Results
  // never decrease from call to call.
  Time send(Time now, std::size_t bytes);
  // Returns how many bytes are read at once: about a millisecond of the link, so that connections
  // take turns.
  std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
  // Returns how many bytes of one connection may be in the link: the bytes that it holds at full
  // rate, plus a reserve that keeps the link busy when the thread wakes late.
  std::size_t most_held_bytes() const noexcept { return most_held_bytes_; }

 private:
  double nanoseconds_per_byte_ = 0.0;
  std::chrono::nanoseconds delay_{0};
  std::size_t chunk_bytes_ = 0;
  std::size_t most_held_bytes_ = 0;
  Time free_{};
};

// One direction of one connection. Used by one thread. The link must outlive the stream.
class SlowStream {
 public:
  using Time = SlowLink::Time;
  enum class End : std::uint8_t { kOpen, kClosed, kReset };

  explicit SlowStream(SlowLink& link) : link_(&link) {}

  bool wants_to_read() const noexcept {
    return end_ == End::kOpen && held_bytes_ < link_->most_held_bytes();
  }
  // Returns whether the receiver's socket is full although bytes are due: poll it for POLLOUT.
  bool wants_to_write() const noexcept { return is_blocked_; }
  // Returns when the next bytes are due. Empty if the stream has no bytes, or wants_to_write().
  std::optional<Time> due() const noexcept;

  // Reads at most one chunk, or the stream's end, from the sender; `buffer` is scratch memory.
  void read_from(int socket, std::span<char> buffer, Time now);
  // Writes the bytes that are due, as far as the receiver's socket takes them, and passes an
  // orderly end on. Returns false when the receiver is gone; its bytes are dropped then.
  bool write_to(int socket, Time now);
  // Called when the sender is gone: delivers the bytes read before, then a reset.
  void reset(Time now);

  // Returns how the stream ended for the receiver. is_lost(): the receiver was gone before the end.
  End delivered() const noexcept { return delivered_; }
  bool is_lost() const noexcept { return is_lost_; }

 private:
  struct Chunk {
    std::vector<char> bytes;
    Time due;
    End end = End::kOpen;  // kClosed, kReset: the stream's end, a chunk without bytes
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
