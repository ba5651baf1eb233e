#include "ps/wire/envelope.h"

namespace syncopate::ps::wire {

Envelope envelope(std::string peer, const MessageT& message) {
  Envelope made{std::move(peer), {}};
  made.frames.push_back(copied_frame(encode(message)));
  made.is_greeting = is_greeting(message);
  return made;
}

bool is_greeting(const MessageT& message) noexcept {
  return message.body.type == Body::Hello || message.body.type == Body::DataHello;
}

}  // namespace syncopate::ps::wire
