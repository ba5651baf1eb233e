#include "ps/server/stop_patience.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

class AServerThatIsAskedToStop : public testing::Test {
 protected:
  bool asked_ = false;
  std::vector<std::string> notes_;
  const std::function<bool()> stop_ = [this] { return asked_; };
  const std::function<void(const std::string&)> note_ = [this](const std::string& line) {
    notes_.push_back(line);
  };
  StopPatience patience_{stop_, note_};
};

TEST_F(AServerThatIsAskedToStop, SaysOnceAndAtOnceWhatItWaitsFor) {
  patience_.check(true, true);
  EXPECT_TRUE(notes_.empty());
  asked_ = true;
  for (int i = 0; i < 3; ++i) patience_.check(true, true);
  EXPECT_EQ(notes_,
            (std::vector<std::string>{"asked to stop; waits for the workers to end, up to 600 s"}));
}

TEST_F(AServerThatIsAskedToStop, EndsAtOnceWhereNobodyTrains) {
  patience_.check(false, true);
  asked_ = true;
  EXPECT_THROW(patience_.check(false, true), PeerError);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(AServerThatIsAskedToStop, EndsAtOnceWhereNoWorkerIsLeft) {
  patience_.check(true, false);  // one may come back
  asked_ = true;
  patience_.check(true, true);
  EXPECT_THROW(patience_.check(true, false), PeerError);
}

}  // namespace
}  // namespace syncopate::ps
