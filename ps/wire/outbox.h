// Messages on their way into a ZeroMQ socket, and those that it does not take yet, by peer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "ps/wire/context.h"
#include "ps/wire/frame.h"

namespace syncopate::ps::wire {

// One thread only, that of the socket, which must outlive it.
class Outbox {
 public:
  // `routes`: the socket is a ROUTER, and a message begins with its peer.
  Outbox(const SocketHandle& socket, bool routes) : socket_(socket), routes_(routes) {}

  // While held, everything waits.
  void hold(bool held) noexcept { is_held_ = held; }

  // In order for each peer. Returns false, and the message is gone, where there is no such peer.
  bool send(Envelope message);
  // Tries what waits.
  void flush();
  void clear();

  bool empty() const noexcept { return waiting_.empty(); }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  enum class Fate { kTaken, kNotNow, kNobody };
  using Queue = std::deque<std::vector<Frame>>;

  Fate hand_over(const std::string& peer, std::vector<Frame>& frames);
  // Hands over from the front. Returns what became of the last one tried; kTaken: all are gone.
  Fate drain(const std::string& peer, Queue& queue);
  void put(const std::string& peer, std::vector<Frame> frames);
  void forget(std::map<std::string, Queue>::iterator of);

  const SocketHandle& socket_;
  const bool routes_;
  bool is_held_ = false;
  std::map<std::string, Queue> waiting_;  // none is empty
  std::int64_t bytes_ = 0;
};

}  // namespace syncopate::ps::wire
