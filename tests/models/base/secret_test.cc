#include "models/base/secret.h"

#include <gtest/gtest.h>

#include "tests/support/contains.h"

namespace syncopate {
namespace {

TEST(RandomNonce, Has128BitsThatDifferAtEachCall) {
  const std::string nonce = random_nonce();
  EXPECT_EQ(nonce.size(), 32U);
  EXPECT_EQ(nonce.find_first_not_of("0123456789abcdef"), std::string::npos) << nonce;
  EXPECT_NE(random_nonce(), nonce);
}

TEST(NameOfANonce, DoesNotContainIt) {
  const std::string nonce = random_nonce();
  EXPECT_EQ(name_of_nonce(nonce), name_of_nonce(nonce));
  EXPECT_NE(name_of_nonce(nonce), name_of_nonce(random_nonce()));
  EXPECT_EQ(name_of_nonce(nonce).size(), 16U);
  EXPECT_FALSE(contains(nonce, name_of_nonce(nonce)));
}

TEST(RandomToken, DiffersAtEachCallAndIsNever0) {
  const std::uint64_t token = random_token();
  EXPECT_NE(token, 0U);
  EXPECT_NE(random_token(), token);
}

}  // namespace
}  // namespace syncopate
