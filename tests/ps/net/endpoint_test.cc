#include "ps/net/endpoint.h"

#include <gtest/gtest.h>

#include <string>

#include "models/base/errors.h"

namespace syncopate {
namespace {

TEST(Endpoint, IsReadFromNameAndPort) {
  EXPECT_EQ(parse_endpoint("node3:13565", "--rendezvous"), (Endpoint{"node3", 13565}));
  EXPECT_EQ(parse_endpoint("10.0.0.7:1", "--rendezvous"), (Endpoint{"10.0.0.7", 1}));
  EXPECT_EQ(parse_endpoint("node3:65535", "--rendezvous"), (Endpoint{"node3", 65535}));
}

TEST(Endpoint, TakesAnIpv6AddressInBrackets) {
  const Endpoint endpoint = parse_endpoint("[fe80::1%eth0]:40001", "--rendezvous");
  EXPECT_EQ(endpoint, (Endpoint{"fe80::1%eth0", 40001}));
  EXPECT_EQ(to_string(endpoint), "[fe80::1%eth0]:40001");
  EXPECT_EQ(to_string(Endpoint{"node3", 4000}), "node3:4000");
}

class WrongEndpoint : public testing::TestWithParam<const char*> {};

TEST_P(WrongEndpoint, IsRefusedNamingWhereItCameFromAndWhatWasExpected) {
  try {
    parse_endpoint(GetParam(), "MASTER_ADDR");
    FAIL() << "it was taken";
  } catch (const UsageError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("MASTER_ADDR '" + std::string(GetParam()) + "'"), std::string::npos)
        << message;
    EXPECT_NE(message.find("HOST:PORT"), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(All, WrongEndpoint,
                         testing::Values("", "node3", ":4000", "node3:", "node3:0", "node3:65536",
                                         "node3:-1", "node3:+1", "node3:40a", "node3: 40",
                                         "fe80::1:4000", "[fe80::1]", "[]:4000", "[fe80::1:4000",
                                         "no de:4000", "tcp://node3:4000"));

}  // namespace
}  // namespace syncopate
