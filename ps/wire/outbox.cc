#include "ps/wire/outbox.h"

#include <zmq.h>

#include <cerrno>
#include <utility>

#include "models/base/errors.h"
#include "ps/wire/frame_content.h"

namespace syncopate::ps::wire {
namespace {

std::int64_t size_of(const std::vector<Frame>& frames) {
  std::int64_t bytes = 0;
  for (const Frame& frame : frames) bytes += static_cast<std::int64_t>(frame.bytes().size());
  return bytes;
}

// 0, or errno.
int send_frame(void* socket, Frame& frame, bool more) {
  for (;;) {
    if (zmq_msg_send(&frame.content().message, socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >=
        0) {
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

}  // namespace

bool Outbox::send(Envelope message) {
  check(!message.frames.empty(), "a message has a header");
  const std::string peer = routes_ ? std::move(message.peer) : "";
  const auto before = waiting_.find(peer);
  if (before == waiting_.end()) {
    const Fate fate = hand_over(peer, message.frames);
    if (fate == Fate::kNotNow) put(peer, std::move(message.frames));
    return fate != Fate::kNobody;
  }
  put(peer, std::move(message.frames));
  const Fate fate = drain(peer, before->second);
  if (fate != Fate::kNotNow) forget(before);
  return fate != Fate::kNobody;
}

void Outbox::flush() {
  // What the socket learns while one peer's messages go may free the way for one that was tried
  // before.
  for (bool moved = true; moved && !waiting_.empty();) {
    moved = false;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto current = next++;
      const std::int64_t before = bytes_;
      if (drain(current->first, current->second) != Fate::kNotNow) {
        forget(current);
        moved = true;
      }
      moved |= bytes_ != before;
    }
  }
}

void Outbox::clear() {
  const auto dropped = std::exchange(waiting_, {});
  bytes_ = 0;
}

Outbox::Fate Outbox::drain(const std::string& peer, Queue& queue) {
  while (!queue.empty()) {
    const std::int64_t size = size_of(queue.front());  // of frames that are sent: none
    const Fate fate = hand_over(peer, queue.front());
    if (fate != Fate::kTaken) return fate;
    bytes_ -= size;
    queue.pop_front();
  }
  return Fate::kTaken;
}

Outbox::Fate Outbox::hand_over(const std::string& peer, std::vector<Frame>& frames) {
  if (is_held_) return Fate::kNotNow;
  const auto judge = [](int reason) {
    if (reason == EAGAIN) return Fate::kNotNow;
    if (reason == EHOSTUNREACH) return Fate::kNobody;
    errno = reason;
    check_zmq(-1, "zmq_msg_send");
    return Fate::kNobody;
  };
  if (routes_) {
    Frame address = Frame::copy_of(std::as_bytes(std::span(peer)));
    if (const int reason = send_frame(socket_.get(), address, true)) return judge(reason);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int reason = send_frame(socket_.get(), frames[i], i + 1 < frames.size());
    if (reason == 0) continue;
    if (i == 0 && !routes_) return judge(reason);
    // The connection broke under the message, and what it has of it is lost with it. The rest must
    // follow, to be dropped: ZeroMQ would else take the next message for it.
    if (reason != EAGAIN) return judge(reason);
  }
  return Fate::kTaken;
}

void Outbox::put(const std::string& peer, std::vector<Frame> frames) {
  bytes_ += size_of(frames);
  waiting_[peer].push_back(std::move(frames));
}

void Outbox::forget(std::map<std::string, Queue>::iterator of) {
  for (const std::vector<Frame>& frames : of->second) bytes_ -= size_of(frames);
  waiting_.erase(of);
}

}  // namespace syncopate::ps::wire
