// One direction of one connection through a slow link: bytes that were read wait here until their
// time has come. link_forwarder.cc gives it sockets and a thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "ps/net/link.h"

namespace syncopate {

// One direction of a task's link, shared by all its connections: bytes leave one after the other at
// its rate, in the order in which they were read, and are there `delay` later.
class SlowLink {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SlowLink(const Link& link);

  // When `bytes` more, read at `now`, are there. Never before what was asked for earlier.
  Time send(Time now, std::size_t bytes);
  // That are read at once: about a millisecond of the link, so that connections take turns.
  std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
  // That one connection may have under way: what the link holds at full rate, and as much as lets a
  // thread that wakes late find the link still busy.
  std::size_t most_held_bytes() const noexcept { return most_held_bytes_; }

 private:
  double nanoseconds_per_byte_ = 0.0;
  std::chrono::nanoseconds delay_{0};
  std::size_t chunk_bytes_ = 0;
  std::size_t most_held_bytes_ = 0;
  Time free_{};
};

// One thread only. The link outlives it.
class SlowStream {
 public:
  using Time = SlowLink::Time;
  enum class End : std::uint8_t { kOpen, kClosed, kReset };

  explicit SlowStream(SlowLink& link) : link_(&link) {}

  bool wants_to_read() const noexcept {
    return end_ == End::kOpen && held_bytes_ < link_->most_held_bytes();
  }
  // The receiver has not taken all that is due: wait until its socket can be written to.
  bool wants_to_write() const noexcept { return is_blocked_; }
  // When something will be due; nothing: nothing is under way, or wants_to_write().
  std::optional<Time> due() const noexcept;

  // At most a chunk of what has come, through `buffer` of so many bytes; or the end of it.
  void read_from(int socket, std::span<char> buffer, Time now);
  // What is due and the socket takes; an orderly end is passed on as such. False: the receiver is
  // gone, and so is what was for it.
  bool write_to(int socket, Time now);
  // The sender is gone: what came before is delivered, then the reset.
  void reset(Time now);

  // How the stream has ended for the receiver; lost: the receiver was gone before.
  End delivered() const noexcept { return delivered_; }
  bool is_lost() const noexcept { return is_lost_; }

 private:
  struct Chunk {
    std::vector<char> bytes;
    Time due;
    End end = End::kOpen;  // else it has no bytes
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
