#include "ps/wire/send_queue.h"

#include <cerrno>
#include <span>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::ps::wire {
namespace {

std::int64_t total_bytes(const std::vector<zmq::message_t>& frames) {
  std::int64_t bytes = 0;
  for (const zmq::message_t& frame : frames) bytes += static_cast<std::int64_t>(frame.size());
  return bytes;
}

}  // namespace

bool SendQueue::send(Envelope message) {
  check(!message.frames.empty(), "a message has a header frame");
  const std::string peer = is_router_ ? std::move(message.peer) : "";
  const auto before = waiting_.find(peer);
  if (before == waiting_.end()) {
    const Outcome outcome = send_now(peer, message.frames);
    if (outcome == Outcome::kNotNow) append(peer, std::move(message.frames));
    return outcome != Outcome::kNoPeer;
  }
  append(peer, std::move(message.frames));
  const Outcome outcome = drain(peer, before->second);
  if (outcome != Outcome::kNotNow) drop(before);
  return outcome != Outcome::kNoPeer;
}

void SendQueue::flush() {
  // Sending makes ZeroMQ process its commands, which can free the pipe of a peer that was tried
  // before: passes over the peers repeat until no message is sent.
  for (bool moved = true; moved && !waiting_.empty();) {
    moved = false;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto current = next++;
      const std::int64_t before = bytes_;
      if (drain(current->first, current->second) != Outcome::kNotNow) {
        drop(current);
        moved = true;
      }
      moved |= bytes_ != before;
    }
  }
}

void SendQueue::clear() {
  const auto dropped = std::exchange(waiting_, {});
  bytes_ = 0;
}

SendQueue::Outcome SendQueue::drain(const std::string& peer, Messages& messages) {
  while (!messages.empty()) {
    const std::int64_t size =
        total_bytes(messages.front());  // taken before sending: sent frames are empty
    const Outcome outcome = send_now(peer, messages.front());
    if (outcome != Outcome::kSent) return outcome;
    bytes_ -= size;
    messages.pop_front();
  }
  return Outcome::kSent;
}

SendQueue::Outcome SendQueue::send_frame(zmq::message_t& frame, bool more) {
  const auto flags =
      more ? zmq::send_flags::sndmore | zmq::send_flags::dontwait : zmq::send_flags::dontwait;
  return zmq_call("zmq_msg_send", [&] {
    try {
      return socket_.send(frame, flags) ? Outcome::kSent : Outcome::kNotNow;
    } catch (const zmq::error_t& error) {
      if (error.num() != EHOSTUNREACH) throw;
      return Outcome::kNoPeer;
    }
  });
}

SendQueue::Outcome SendQueue::send_now(const std::string& peer,
                                       std::vector<zmq::message_t>& frames) {
  if (is_held_) return Outcome::kNotNow;
  if (is_router_) {
    zmq::message_t address = copied_frame(std::as_bytes(std::span(peer)));
    const Outcome outcome = send_frame(address, true);
    if (outcome != Outcome::kSent) return outcome;
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Outcome outcome = send_frame(frames[i], i + 1 < frames.size());
    if (outcome == Outcome::kSent) continue;
    if (i == 0 && !is_router_) return outcome;
    // The connection broke in the middle of the message. The message's remaining frames must still
    // be passed to ZeroMQ, which drops them: it would else append the next message to this one.
    if (outcome != Outcome::kNotNow) return outcome;
  }
  return Outcome::kSent;
}

void SendQueue::append(const std::string& peer, std::vector<zmq::message_t> frames) {
  bytes_ += total_bytes(frames);
  waiting_[peer].push_back(std::move(frames));
}

void SendQueue::drop(std::map<std::string, Messages>::iterator entry) {
  for (const std::vector<zmq::message_t>& frames : entry->second) bytes_ -= total_bytes(frames);
  waiting_.erase(entry);
}

}  // namespace syncopate::ps::wire
