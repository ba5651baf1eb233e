// The greeting of a connection (ps/net/greeting.h) as messages of a ZeroMQ socket: GreetingCall,
// GreetingChallenge, a sealed Hello or DataHello, GreetingProof. Socket (zmq_socket.h) uses the
// classes of both sides. Neither class calls ZeroMQ.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/net/greeting.h"
#include "ps/wire/envelope.h"

namespace syncopate::ps::wire {

// What GreetingAnswers or GreetingCalls does with a received message.
struct GreetingStep {
  bool is_for_owner = true;        // false: the message was part of the greeting
  std::optional<Envelope> answer;  // to be sent over the same connection
};

// The listening side: answers the greetings that a listening socket receives.
class GreetingAnswers {
 public:
  explicit GreetingAnswers(std::string nonce) : nonce_(std::move(nonce)) {}

  // Removes the seal of a Hello or a DataHello, and sets is_of_job of `message`. `connection` is
  // the descriptor of the connection over which the message came. A connection is identified by
  // descriptor and routing id together. The routing id alone is not enough, because callers may
  // choose it. The descriptor alone is not enough either: a late message of a closed connection may
  // arrive after messages of a new connection with the same descriptor.
  GreetingStep take(Received& message, int connection);
  // Forgets the earlier connections with this descriptor. Called when a new connection with this
  // descriptor has opened, before its messages are passed to take(). Connections are not forgotten
  // when they close, because their last messages may still arrive.
  void on_opened(int connection);
  // Returns the answer to a message of another protocol version, as a Refused message of that
  // version; nullopt if the bytes are not a message of any version. All versions have the same
  // Refused message.
  static std::optional<Envelope> refuse_other_version(const Envelope& message);

 private:
  const std::string nonce_;
  // The greetings of the connections that have sent a call, by descriptor and routing id.
  std::map<std::pair<int, std::string>, GreetingListener> listeners_;
};

// The connecting side: the greetings that a connecting socket sends, one for each of its successive
// connections.
class GreetingCalls {
 public:
  // `target` is the endpoint as text, for log messages.
  GreetingCalls(std::string nonce, std::string target)
      : nonce_(std::move(nonce)), target_(std::move(target)) {}

  // Returns the first message of a new connection.
  Envelope begin();
  // Ends the greeting of the present connection. Returns whether the listener had sent its
  // challenge; logs the first missing challenge. Called when the connection has ended.
  bool end();

  bool is_challenged() const noexcept { return caller_ && caller_->is_challenged(); }
  bool waits_for_challenge() const noexcept { return caller_ && !caller_->is_challenged(); }
  // Returns whether the listener sent no challenge over the present connection or, if there is no
  // connection, over the last one.
  bool lacks_challenge() const noexcept { return lacks_challenge_; }

  // Returns the message to send; adds a seal if the message is a greeting. Until the challenge has
  // come, stores the message and returns nullopt.
  std::optional<Envelope> seal(Envelope message);
  // Seals and returns the messages that seal() stored. Called once the challenge has come.
  std::vector<Envelope> take_kept();
  // Handles a message that the listener has sent. Turns a message with a wrong proof into a Refused
  // message for the owner of the socket.
  GreetingStep take(Received& message);

 private:
  bool is_challenge_for_this(const GreetingChallengeT& challenge) const;

  const std::string nonce_;
  const std::string target_;
  std::optional<GreetingCaller> caller_;  // the greeting of the present connection
  std::vector<Envelope> kept_;
  bool is_proven_ = false;  // the listener has proven that it knows the nonce
  bool lacks_challenge_ = false;
  bool has_logged_silence_ = false;
};

}  // namespace syncopate::ps::wire
