#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "ps/server/control_socket.h"

namespace syncopate::ps {
namespace {

class StopTimeoutTest : public testing::Test {
 protected:
  bool asked_ = false;
  std::vector<std::string> notes_;
  const std::function<bool()> stop_ = [this] { return asked_; };
  const std::function<void(const std::string&)> note_ = [this](const std::string& line) {
    notes_.push_back(line);
  };
  StopTimeout timeout_{stop_, note_};
};

TEST_F(StopTimeoutTest, NotesOnceThatItWaitsForTheWorkers) {
  timeout_.check(true, true);
  EXPECT_TRUE(notes_.empty());
  asked_ = true;
  for (int i = 0; i < 3; ++i) timeout_.check(true, true);
  EXPECT_EQ(notes_,
            (std::vector<std::string>{"stop requested; waits up to 600 s for the workers to end"}));
}

TEST_F(StopTimeoutTest, EndsAtOnceBeforeTheJobHasBegun) {
  timeout_.check(false, true);
  asked_ = true;
  EXPECT_THROW(timeout_.check(false, true), PeerError);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(StopTimeoutTest, EndsAtOnceIfNoWorkerIsLeft) {
  timeout_.check(true, false);  // no error yet: a worker may reconnect
  asked_ = true;
  timeout_.check(true, true);
  EXPECT_THROW(timeout_.check(true, false), PeerError);
}

}  // namespace
}  // namespace syncopate::ps
