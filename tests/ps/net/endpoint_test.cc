#include "ps/net/endpoint.h"

#include <gtest/gtest.h>
#include <netdb.h>

#include <string>

#include "models/base/errors.h"
#include "ps/net/socket.h"
#include "tests/support/contains.h"
#include "tests/support/outer_address.h"
#include "tests/support/thrown.h"

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
  EXPECT_TRUE(contains(message_of<UsageError>([&] { parse_endpoint(GetParam(), "MASTER_ADDR"); }),
                       "MASTER_ADDR '" + std::string(GetParam()) + "'", "HOST:PORT"));
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
  EXPECT_TRUE(contains(message_of<UsageError>([&] {
                         await_host({"no..host", 4000}, Deadline::after(milliseconds(50)));
                       }),
                       "the host name 'no..host' is unknown"));
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

TEST(ListeningEndpoint, IsTheAddressThatTheOthersWereTold) {
  const std::string address = outer_address();
  if (address.empty()) GTEST_SKIP() << "this machine has no address beside loopback";
  EXPECT_TRUE(is_own_address(address));
  EXPECT_EQ(listening_endpoint(address, 4000), (Endpoint{address, 4000}));
}

TEST(ListeningEndpoint, IsEveryInterfaceWhereTheOthersMayUseAnotherAddress) {
  EXPECT_FALSE(is_own_address("192.0.2.1"));
  EXPECT_FALSE(is_own_address("n1"));
  // An address behind address translation, every interface, and a name that is unknown here.
  for (const std::string host : {"192.0.2.1", "0.0.0.0", "::", "", "no..host"}) {
    EXPECT_EQ(listening_endpoint(host, 4000), (Endpoint{"", 4000})) << host;
  }
}

// Debian gives a machine's own name the address 127.0.1.1, which other machines do not see.
TEST(ListeningEndpoint, OfTheOwnNameIsNotLoopback) {
  const std::string host = listening_endpoint(own_host_name(), 4000).host;
  EXPECT_TRUE(host.empty() || (!is_loopback(host) && is_own_address(host))) << host;
}

}  // namespace
}  // namespace syncopate
