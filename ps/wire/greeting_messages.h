// The greeting of a connection (ps/net/greeting.h) as messages of a ZeroMQ socket: GreetingCall,
// GreetingChallenge, a sealed Hello or DataHello, GreetingProof. Socket uses both sides
// (zmq_socket.h); neither touches ZeroMQ.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/net/greeting.h"
#include "ps/wire/envelope.h"

namespace syncopate::ps::wire {

// What the side of a greeting does with a received message.
struct GreetingStep {
  bool is_for_owner = true;        // false: the message was part of the greeting
  std::optional<Envelope> answer;  // to be sent over the same connection
};

// The greetings that a listening socket receives.
class GreetingAnswers {
 public:
  explicit GreetingAnswers(std::string nonce) : nonce_(std::move(nonce)) {}

  // Takes the seal off a Hello or a DataHello, and sets is_of_job of `message`. `connection`: the
  // descriptor of the connection that the message came over. The routing id alone would not do:
  // callers may choose theirs. Nor would the descriptor: messages of a closed connection may come
  // behind messages of the next connection with its descriptor.
  GreetingStep take(Received& message, int connection);
  // A connection with this descriptor has opened: what was known of an earlier one is forgotten.
  // Called before its messages are taken. A connection that closes is kept until then, because its
  // last messages may still come.
  void on_opened(int connection);
  // Returns the answer to a message of another version, in that version's protocol; nothing if the
  // message is of no version. All versions have the same Refused message.
  static std::optional<Envelope> refuse_other_version(const Envelope& message);

 private:
  const std::string nonce_;
  // By descriptor and routing id, of the connections that have called.
  std::map<std::pair<int, std::string>, GreetingListener> listeners_;
};

// The greeting of a connecting socket, over one connection after the other.
class GreetingCalls {
 public:
  // `target`: the endpoint, for messages to people.
  GreetingCalls(std::string nonce, std::string target)
      : nonce_(std::move(nonce)), target_(std::move(target)) {}

  // Returns the first message of a new connection.
  Envelope begin();
  // The connection has ended. Returns whether the other end had sent its challenge. Logs once that
  // it had not.
  bool end();

  bool is_challenged() const noexcept { return caller_ && caller_->is_challenged(); }
  bool waits_for_challenge() const noexcept { return caller_ && !caller_->is_challenged(); }
  // Whether the other end of this connection, or of the last one, has sent no challenge.
  bool lacks_challenge() const noexcept { return lacks_challenge_; }

  // Returns the message, with a seal if it is a greeting. Before the challenge the message is kept,
  // and nothing returned.
  std::optional<Envelope> seal(Envelope message);
  // Returns the messages that were kept, sealed. Called once the challenge has come.
  std::vector<Envelope> take_kept();
  // A wrong proof becomes a Refused message for the owner.
  GreetingStep take(Received& message);

 private:
  bool is_challenge_for_this(const GreetingChallengeT& challenge) const;

  const std::string nonce_;
  const std::string target_;
  std::optional<GreetingCaller> caller_;  // of the connection
  std::vector<Envelope> kept_;
  bool is_proven_ = false;  // the other end of the connection knows the nonce
  bool lacks_challenge_ = false;
  bool has_logged_silence_ = false;
};

}  // namespace syncopate::ps::wire
