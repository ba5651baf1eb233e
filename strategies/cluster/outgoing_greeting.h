// The caller's side of the greeting (ps/net/greeting.h) on a Connection to rank 0 or to the next
// rank of a ring. pending_connections.h has the listener's side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ps/net/connection.h"
#include "ps/net/greeting.h"

namespace syncopate {

// The types of the frames of a greeting, besides the greeting itself.
inline constexpr std::uint16_t kGreetingCall = 0x4701;       // to the listener: ""
inline constexpr std::uint16_t kGreetingChallenge = 0x4702;  // to the caller: the challenge
inline constexpr std::uint16_t kGreetingProof = 0x4703;      // to the caller: the listener's proof

// One thread only.
class OutgoingGreeting {
 public:
  // `hello`: the frame that introduces this task. `refusal`: the type of the frame that the
  // listener may refuse the caller with, without a proof; 0: none.
  OutgoingGreeting(std::string nonce, Frame hello, std::uint16_t refusal);

  // Sends the call. Throws PeerError.
  static void begin(Connection& listener, const Deadline& deadline);
  // Continues the greeting. Returns the first frame behind the listener's proof, or a refusal.
  // Never blocks. Throws PeerError, also for a listener that does not know the nonce.
  std::optional<Frame> try_receive(Connection& listener);
  // As try_receive(), but waits.
  Frame receive(Connection& listener, const Deadline& deadline);

 private:
  GreetingCaller caller_;
  Frame hello_;
  std::uint16_t refusal_;
  bool is_proven_ = false;
};

}  // namespace syncopate
