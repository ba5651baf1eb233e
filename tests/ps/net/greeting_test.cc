#include "ps/net/greeting.h"

#include <gtest/gtest.h>

#include <string>

namespace syncopate {
namespace {

std::string hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

// Source: RFC 4231, test cases 1 and 2; the third is the HMAC of nothing with an empty key.
TEST(HmacSha256, IsThatOfTheStandard) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256("", "")),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Proof, CoversWhereOneFactEndsAndTheNextBegins) {
  EXPECT_NE(prove("nonce", {"ab", "c"}), prove("nonce", {"a", "bc"}));
  EXPECT_NE(prove("nonce", {"ab"}), prove("nonce", {"ab", ""}));
  EXPECT_NE(prove("nonce", {"ab"}), prove("other", {"ab"}));
}

// A caller and a listener with this nonce, and a greeting between them.
struct Meeting {
  explicit Meeting(const std::string& nonce = "nonce") : listener(nonce), caller(nonce) {
    caller.take(listener.challenge());
    seal = caller.seal("rank 1");
  }
  GreetingListener listener;
  GreetingCaller caller;
  std::string seal;
};

TEST(Greeting, ProvesBothSidesToEachOther) {
  for (const std::string nonce : {"nonce", "", " any\0bytes\n"}) {
    const Meeting meeting(nonce);
    const auto proof = meeting.listener.check("rank 1", meeting.seal);
    ASSERT_TRUE(proof);
    EXPECT_TRUE(meeting.caller.is_listeners(*proof));
    EXPECT_EQ(meeting.seal.size(), kSealBytes);
  }
}

TEST(Greeting, IsRefusedWithAnotherNonceTextOrConnection) {
  const Meeting meeting;
  EXPECT_FALSE(meeting.listener.check("rank 2", meeting.seal));
  EXPECT_FALSE(meeting.listener.check("rank 1", meeting.seal + "x"));
  EXPECT_FALSE(meeting.listener.check("rank 1", ""));
  EXPECT_FALSE(GreetingListener("nonce").check("rank 1", meeting.seal)) << "another connection";
  GreetingCaller stranger("guessed");
  stranger.take(meeting.listener.challenge());
  EXPECT_FALSE(meeting.listener.check("rank 1", stranger.seal("rank 1")));
}

TEST(Greeting, AcceptsNoProofOfTheOtherDirectionOrOfAnotherCaller) {
  const Meeting meeting;
  EXPECT_FALSE(meeting.caller.is_listeners(meeting.seal.substr(kChallengeBytes)));
  const Meeting other;
  const auto proof = other.listener.check("rank 1", other.seal);
  ASSERT_TRUE(proof);
  EXPECT_FALSE(meeting.caller.is_listeners(*proof));
  EXPECT_FALSE(meeting.caller.is_listeners(""));
  EXPECT_FALSE(GreetingCaller("nonce").is_listeners(*proof)) << "without a challenge";
}

}  // namespace
}  // namespace syncopate
