#include "models/base/addresses.h"

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

}  // namespace
}  // namespace syncopate
