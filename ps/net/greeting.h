// The greeting: two tasks that connect prove to each other that they know the job's nonce, without
// sending the nonce. The rendezvous, the ring and the sockets of parameter servers use the
// greeting, each with its own kind of frames:
//
//   caller   -> listener   call
//   listener -> caller     challenge, random for each call
//   caller   -> listener   greeting: a text, with a seal: the caller's challenge and proof
//   listener -> caller     the listener's proof
//
// A proof is an HMAC-SHA256 with the nonce as its key. The caller's proof covers both challenges
// and the text, which names the task and the purpose of the connection. The listener's proof covers
// both challenges. So a proof is not valid on another connection, for another task or in the other
// direction. A job without a nonce uses the empty key, so that its proofs prove nothing. Source:
// RFC 2104 (HMAC); ISO/IEC 9798-4, mutual authentication by keyed hashes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kChallengeBytes = 32;
inline constexpr std::size_t kSealBytes = kChallengeBytes + kProofBytes;

// Returns the 32 bytes of HMAC-SHA256.
std::string hmac_sha256(std::string_view key, std::string_view text);

// Returns the HMAC of a list of texts. The length of each text is included, so that two different
// lists never give the same bytes to the HMAC.
std::string prove(std::string_view nonce, std::initializer_list<std::string_view> facts);

// Compares proofs in a time that does not depend on their content.
bool is_same_proof(std::string_view left, std::string_view right);

// Returns 32 random characters.
std::string random_challenge();

// The caller's side of the greeting on one connection.
class GreetingCaller {
 public:
  explicit GreetingCaller(std::string nonce);

  // Takes the listener's challenge.
  void take(std::string_view challenge) { challenge_ = challenge; }
  bool is_challenged() const noexcept { return !challenge_.empty(); }
  // Returns the seal of a greeting with this text. The listener must have sent its challenge.
  std::string seal(std::string_view text) const;
  // Returns whether `proof`, the listener's answer to own_challenge(), shows that the listener
  // knows the nonce.
  bool is_listeners(std::string_view proof) const;
  const std::string& own_challenge() const noexcept { return own_challenge_; }

 private:
  std::string nonce_;
  std::string own_challenge_;
  std::string challenge_;  // the listener's challenge; "" before it has come
};

// The listener's side of the greeting on one connection, created when the caller's call arrives.
// Each connection has a random challenge, so a recorded greeting is not valid on any other
// connection.
class GreetingListener {
 public:
  explicit GreetingListener(std::string nonce);

  const std::string& challenge() const noexcept { return challenge_; }
  // Returns the proof to send to the caller if the caller's `seal` of `text` is correct, otherwise
  // nullopt.
  std::optional<std::string> check(std::string_view text, std::string_view seal) const;

 private:
  std::string nonce_;
  std::string challenge_;
};

}  // namespace syncopate
