// The caller's side of the greeting (ps/net/greeting.h), over a Connection to rank 0 or to the next
// rank of a ring. pending_connections.h has the listener's side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ps/net/connection.h"
#include "ps/net/greeting.h"

namespace syncopate {

// The types of all frames of a greeting except the frame in which the caller introduces its task.
// That frame, with its type, is the parameter `hello` of the constructor of OutgoingGreeting.
inline constexpr std::uint16_t kGreetingCall = 0x4701;       // to the listener, without payload
inline constexpr std::uint16_t kGreetingChallenge = 0x4702;  // to the caller: the challenge
inline constexpr std::uint16_t kGreetingProof = 0x4703;      // to the caller: the listener's proof

// One thread only.
class OutgoingGreeting {
 public:
  // `hello` is the frame that introduces this task. `refusal` is the type of the frame with which
  // the listener may refuse the caller, without a proof; 0 if there is no such frame.
  OutgoingGreeting(std::string nonce, Frame hello, std::uint16_t refusal);

  // Sends the call. Throws PeerError.
  static void begin(Connection& listener, const Deadline& deadline);
  // Continues the greeting. Returns the first frame after the listener's proof, or the listener's
  // refusal; nullopt while neither has arrived. Never blocks. Throws PeerError if the connection
  // fails or the listener does not know the nonce.
  std::optional<Frame> try_receive(Connection& listener);
  // Waits for the frame that try_receive() returns, and returns it. Throws the errors of
  // try_receive(), and PeerError at the deadline.
  Frame receive(Connection& listener, const Deadline& deadline);

 private:
  GreetingCaller caller_;
  Frame hello_;
  std::uint16_t refusal_;
  bool is_proven_ = false;
};

}  // namespace syncopate
