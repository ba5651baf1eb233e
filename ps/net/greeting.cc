#include "ps/net/greeting.h"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>

#include <cstdint>
#include <utility>

#include "models/base/errors.h"
#include "models/base/secret.h"

namespace syncopate {
namespace {

// The directions of proofs. If proofs cover other bytes in a later version, these texts must
// change.
constexpr std::string_view kCaller = "syncopate caller 1";
constexpr std::string_view kListener = "syncopate listener 1";

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view text) {
  static_assert(crypto_auth_hmacsha256_BYTES == kProofBytes);
  const auto bytes = [](std::string_view view) {
    return reinterpret_cast<const unsigned char*>(view.data());
  };
  std::string code(kProofBytes, '\0');
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, bytes(text), text.size());
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(code.data()));
  return code;
}

std::string prove(std::string_view nonce, std::initializer_list<std::string_view> facts) {
  std::string text;
  for (const std::string_view fact : facts) {
    for (std::uint64_t size = fact.size(), byte = 0; byte < sizeof size; ++byte, size >>= 8U) {
      text += static_cast<char>(size & 255U);
    }
    text += fact;
  }
  return hmac_sha256(nonce, text);
}

bool is_same_proof(std::string_view left, std::string_view right) {
  return left.size() == right.size() && sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string random_challenge() {
  std::string challenge = random_nonce();
  check(challenge.size() == kChallengeBytes, "a random nonce has as many bytes as a challenge");
  return challenge;
}

GreetingCaller::GreetingCaller(std::string nonce)
    : nonce_(std::move(nonce)), own_challenge_(random_challenge()) {}

std::string GreetingCaller::seal(std::string_view text) const {
  check(is_challenged(), "a greeting is sealed after the listener's challenge");
  return own_challenge_ + prove(nonce_, {kCaller, challenge_, own_challenge_, text});
}

bool GreetingCaller::is_listeners(std::string_view proof) const {
  return is_challenged() &&
         is_same_proof(proof, prove(nonce_, {kListener, challenge_, own_challenge_}));
}

GreetingListener::GreetingListener(std::string nonce)
    : nonce_(std::move(nonce)), challenge_(random_challenge()) {}

std::optional<std::string> GreetingListener::check(std::string_view text,
                                                   std::string_view seal) const {
  if (seal.size() != kSealBytes) return std::nullopt;
  const std::string_view callers = seal.substr(0, kChallengeBytes);
  const std::string proof = prove(nonce_, {kCaller, challenge_, callers, text});
  if (!is_same_proof(seal.substr(kChallengeBytes), proof)) return std::nullopt;
  return prove(nonce_, {kListener, challenge_, callers});
}

}  // namespace syncopate
