#include "ps/wire/greeting_messages.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/log.h"
#include "models/base/secret.h"

namespace syncopate::ps::wire {
namespace {

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

GreetingStep GreetingAnswers::take(Received& message, int connection) {
  if (const GreetingCallT* const call = message.header.body.AsGreetingCall()) {
    if (call->challenge.size() != kChallengeBytes) return {.is_for_owner = false, .answer = {}};
    GreetingChallengeT answer;
    answer.answers = call->challenge;
    const auto listener =
        listeners_.insert_or_assign({connection, message.peer}, GreetingListener(nonce_)).first;
    answer.challenge = bytes_of(listener->second.challenge());
    return {.is_for_owner = false,
            .answer = envelope(message.peer, make_message(std::move(answer)))};
  }
  if (!is_greeting(message.header)) return {};
  message.is_of_job = false;
  if (message.frames.size() < 2) return {};
  const zmq::message_t seal = std::move(message.frames.back());
  message.frames.pop_back();
  const auto listener = listeners_.find({connection, message.peer});
  if (listener == listeners_.end()) return {};
  const std::optional<std::string> proof =
      listener->second.check(message.frames.front().to_string_view(), seal.to_string_view());
  if (!proof) return {};
  message.is_of_job = true;
  GreetingProofT answer;
  answer.answers = bytes_of(seal.to_string_view().substr(0, kChallengeBytes));
  answer.proof = bytes_of(*proof);
  return {.answer = envelope(message.peer, make_message(std::move(answer)))};
}

void GreetingAnswers::on_opened(int connection) {
  std::erase_if(listeners_, [&](const auto& entry) { return entry.first.first == connection; });
}

std::optional<Envelope> GreetingAnswers::refuse_other_version(const Envelope& message) {
  if (message.frames.empty()) return std::nullopt;
  const std::optional<std::uint16_t> theirs = other_protocol(bytes_in(message.frames.front()));
  if (!theirs) return std::nullopt;
  RefusedT refused;
  refused.line = fmt::format(
      "this task uses protocol {} of parameter servers, and the server that it called protocol {}; "
      "start the same version of syncopate everywhere",
      *theirs, kProtocol);
  refused.is_usage_error = true;
  MessageT answer = make_message(std::move(refused));
  answer.protocol = *theirs;
  return envelope(message.peer, answer);
}

Envelope GreetingCalls::begin() {
  caller_.emplace(nonce_);
  is_proven_ = false;
  lacks_challenge_ = true;
  GreetingCallT call;
  call.challenge = bytes_of(caller_->own_challenge());
  return envelope("", make_message(std::move(call)));
}

bool GreetingCalls::end() {
  const bool was_challenged = is_challenged();
  caller_.reset();
  if (was_challenged) {
    kept_.clear();
  } else if (!std::exchange(has_logged_silence_, true)) {
    log(LogLevel::kWarning,
        fmt::format("{} closed the connection and did not answer the greeting of protocol {}; is "
                    "it the same version of syncopate?",
                    target_, kProtocol));
  }
  return was_challenged;
}

std::optional<Envelope> GreetingCalls::seal(Envelope message) {
  if (!is_challenged()) {
    kept_.push_back(std::move(message));
    return std::nullopt;
  }
  if (message.is_greeting) {
    const std::string seal = caller_->seal(message.frames.front().to_string_view());
    message.frames.push_back(copied_frame(std::as_bytes(std::span(seal))));
  }
  return message;
}

std::vector<Envelope> GreetingCalls::take_kept() {
  std::vector<Envelope> sealed;
  for (Envelope& message : std::exchange(kept_, {})) sealed.push_back(*seal(std::move(message)));
  return sealed;
}

bool GreetingCalls::is_challenge_for_this(const GreetingChallengeT& challenge) const {
  return waits_for_challenge() && text_of(challenge.answers) == caller_->own_challenge() &&
         challenge.challenge.size() == kChallengeBytes;
}

GreetingStep GreetingCalls::take(Received& message) {
  const BodyUnion& body = message.header.body;
  if (const GreetingChallengeT* const challenge = body.AsGreetingChallenge()) {
    if (is_challenge_for_this(*challenge)) {
      caller_->take(text_of(challenge->challenge));
      lacks_challenge_ = false;
    }
    return {.is_for_owner = false, .answer = {}};
  }
  if (const GreetingProofT* const proof = body.AsGreetingProof()) {
    const bool is_for_this = caller_ && text_of(proof->answers) == caller_->own_challenge();
    if (is_for_this) is_proven_ = caller_->is_listeners(text_of(proof->proof));
    if (!is_for_this || is_proven_) return {.is_for_owner = false, .answer = {}};
    RefusedT refused;
    refused.line = fmt::format(
        "{} did not prove that it knows this job's nonce: {}; does another program use this port?",
        target_, kOtherNonce);
    message.header = make_message(std::move(refused));
    return {};
  }
  return {.is_for_owner = is_proven_ || body.type == Body::Refused, .answer = {}};
}

}  // namespace syncopate::ps::wire
