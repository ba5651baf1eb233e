#include "strategies/cluster/outgoing_greeting.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "models/base/errors.h"
#include "models/base/secret.h"

namespace syncopate {

OutgoingGreeting::OutgoingGreeting(std::string nonce, Frame hello, std::uint16_t refusal)
    : caller_(std::move(nonce)), hello_(std::move(hello)), refusal_(refusal) {}

void OutgoingGreeting::begin(Connection& listener, const Deadline& deadline) {
  listener.send({kGreetingCall, ""}, deadline);
}

std::optional<Frame> OutgoingGreeting::try_receive(Connection& listener) {
  for (;;) {
    std::optional<Frame> frame;
    try {
      frame = listener.try_receive();
    } catch (const ProtocolVersionError&) {
      throw;
    } catch (const PeerError& error) {
      if (caller_.is_challenged()) throw;
      throw PeerError(fmt::format(
          "{} before it answered the greeting of protocol version {}; is it a task of this job, "
          "and the same version of syncopate?",
          error.what(), kProtocolVersion));
    }
    if (!frame || is_proven_ || (frame->type == refusal_ && refusal_ != 0)) return frame;
    if (frame->type == kGreetingChallenge && frame->payload.size() == kChallengeBytes &&
        !caller_.is_challenged()) {
      caller_.take(frame->payload);
      const std::string seal = caller_.seal(hello_.payload);
      listener.queue({hello_.type, seal + hello_.payload});
      listener.flush();
    } else if (frame->type == kGreetingProof && caller_.is_listeners(frame->payload)) {
      is_proven_ = true;
    } else {
      throw PeerError(
          fmt::format("{}: it did not prove that it knows this job's nonce (frame of type {}): {}; "
                      "is another program using this port?",
                      listener.peer(), frame->type, kOtherNonce));
    }
  }
}

Frame OutgoingGreeting::receive(Connection& listener, const Deadline& deadline) {
  for (;;) {
    if (std::optional<Frame> frame = try_receive(listener)) return *std::move(frame);
    listener.flush();
    const short events = listener.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    if (!wait_ready(listener.descriptor(), events, deadline)) {
      throw PeerError(fmt::format("{}: it did not answer within {}", listener.peer(),
                                  in_seconds(deadline.timeout())));
    }
  }
}

}  // namespace syncopate
