#include "ps/net/addresses.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AHost, IsNotWaitedForWhereItIsKnown) {
  const Deadline patience = Deadline::after(seconds(60));
  await_host({"127.0.0.1", 4000}, patience);
  await_host({"::1", 4000}, patience);
  EXPECT_FALSE(patience.passed());
}

// A name with nothing between two dots is none: nobody need be asked.
TEST(AHost, ThatNobodyKnowsIsNamedWhenPatienceIsOver) {
  try {
    await_host({"no..host", 4000}, Deadline::after(milliseconds(50)));
    FAIL() << "somebody knows it";
  } catch (const UsageError& error) {
    const std::string line = error.what();
    EXPECT_NE(line.find("nobody knows the host 'no..host'"), std::string::npos) << line;
  }
}

TEST(WhoListens, IsThereForThisMachineAloneWhereLoopbackIsCalled) {
  EXPECT_EQ(listening_endpoint("127.0.0.1", 4000), (Endpoint{"127.0.0.1", 4000}));
  EXPECT_EQ(listening_endpoint("127.3.2.1", 4000), (Endpoint{"127.3.2.1", 4000}));
  EXPECT_EQ(listening_endpoint("::1", 4000), (Endpoint{"::1", 4000}));
  EXPECT_EQ(listening_endpoint("localhost", 4000), (Endpoint{"127.0.0.1", 4000}));
}

// What it means here need not be what the others look up.
TEST(WhoListens, IsThereForAllWhereItsHostHasAName) {
  for (const std::string& host : {own_host_name(), std::string("0.0.0.0"), std::string("n1")}) {
    EXPECT_EQ(listening_endpoint(host, 4000), (Endpoint{"", 4000})) << host;
  }
}

}  // namespace
}  // namespace syncopate
