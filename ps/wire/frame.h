// Messages as they lie in memory: frames of bytes, the first one a header.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ps/wire/message.h"

namespace syncopate::ps::wire {

// A frame of bytes: received ones own ZeroMQ's memory; to be sent ones own a copy, or borrow.
class Frame {
 public:
  Frame();
  static Frame copy_of(std::span<const std::byte> bytes);
  // Not copied: `bytes` stay as they are until `release` is called: on a thread of ZeroMQ's, or,
  // for a frame that is not sent, by whoever destroys it. It must not throw.
  static Frame borrow(std::span<const std::byte> bytes, std::function<void()> release);
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;
  ~Frame();

  // Of a frame that was sent, and of one that was moved from: none.
  std::span<const std::byte> bytes() const noexcept;

  struct Content;  // a zmq_msg_t; ps/wire/frame_content.h, for sockets
  Content& content() noexcept { return *content_; }

 private:
  std::unique_ptr<Content> content_;
};

// A whole message, in or out.
struct Envelope {
  std::string peer;  // routing id: of the sender, or (ROUTER) of the receiver; DEALER: unused
  std::vector<Frame> frames;  // [0]: the header
};
Envelope envelope(std::string peer, const MessageT& message);  // header frame only

}  // namespace syncopate::ps::wire
