#include "ps/net/endpoint.h"

#include <gtest/gtest.h>
#include <netdb.h>

#include <string>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Endpoint, IsParsedFromNameAndPort) {
  EXPECT_EQ(parse_endpoint("node3:13565", "--rendezvous"), (Endpoint{"node3", 13565}));
  EXPECT_EQ(parse_endpoint("10.0.0.7:1", "--rendezvous"), (Endpoint{"10.0.0.7", 1}));
  EXPECT_EQ(parse_endpoint("node3:65535", "--rendezvous"), (Endpoint{"node3", 65535}));
}

TEST(Endpoint, AcceptsAnIpv6AddressInBrackets) {
  const Endpoint endpoint = parse_endpoint("[fe80::1%eth0]:40001", "--rendezvous");
  EXPECT_EQ(endpoint, (Endpoint{"fe80::1%eth0", 40001}));
  EXPECT_EQ(to_string(endpoint), "[fe80::1%eth0]:40001");
  EXPECT_EQ(to_string(Endpoint{"node3", 4000}), "node3:4000");
}

class WrongEndpoint : public testing::TestWithParam<const char*> {};

TEST_P(WrongEndpoint, IsRefusedWithItsSourceAndTheExpectedForm) {
  try {
    parse_endpoint(GetParam(), "MASTER_ADDR");
    FAIL() << "the endpoint was accepted";
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

TEST(AwaitHost, ReturnsAtOnceForAKnownHost) {
  const Deadline deadline = Deadline::after(seconds(60));
  await_host({"127.0.0.1", 4000}, deadline);
  await_host({"::1", 4000}, deadline);
  EXPECT_FALSE(deadline.passed());
}

// A host name with an empty label is invalid, so no name server is asked.
TEST(AwaitHost, NamesAnUnknownHostWhenTheTimeoutIsOver) {
  try {
    await_host({"no..host", 4000}, Deadline::after(milliseconds(50)));
    FAIL() << "the host name was resolved";
  } catch (const UsageError& error) {
    const std::string line = error.what();
    EXPECT_NE(line.find("the host name 'no..host' is unknown"), std::string::npos) << line;
  }
}

TEST(ListeningEndpoint, IsLoopbackWhenTheHostMeansLoopback) {
  EXPECT_EQ(listening_endpoint("127.0.0.1", 4000), (Endpoint{"127.0.0.1", 4000}));
  EXPECT_EQ(listening_endpoint("127.3.2.1", 4000), (Endpoint{"127.3.2.1", 4000}));
  EXPECT_EQ(listening_endpoint("::1", 4000), (Endpoint{"::1", 4000}));
}

TEST(ListeningEndpoint, IsLoopbackForLocalhost) {
  addrinfo* found = nullptr;
  if (getaddrinfo("localhost", nullptr, nullptr, &found) != 0) {
    GTEST_SKIP() << "this machine cannot look up localhost; /etc/hosts should name it";
  }
  freeaddrinfo(found);
  EXPECT_EQ(listening_endpoint("localhost", 4000), (Endpoint{"127.0.0.1", 4000}));
}

// A host name may resolve to another address on this machine than on the others.
TEST(ListeningEndpoint, IsEveryInterfaceWhenTheHostHasAName) {
  for (const std::string& host : {own_host_name(), std::string("0.0.0.0"), std::string("n1")}) {
    EXPECT_EQ(listening_endpoint(host, 4000), (Endpoint{"", 4000})) << host;
  }
}

}  // namespace
}  // namespace syncopate
