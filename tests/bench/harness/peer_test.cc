// Tests the communication with a peer process. A shell script with fixed answers is the peer, so
// the test needs no PyTorch.
#include "bench/harness/peer.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

using std::chrono::milliseconds;

PeerOptions fake_peer(const std::string& behaviour) {
  return {.command = {"sh", SYNCOPATE_FAKE_PEER, behaviour},
          .ready_timeout = milliseconds(10'000),
          .answer_timeout = milliseconds(10'000)};
}

std::vector<double> run_peer(const PeerOptions& options) { return Peer(options).run(3); }

TEST(Peer, AnswersTheSecondsOfEachStep) {
  Peer peer(fake_peer("well"));
  EXPECT_EQ(peer.description(), "a peer of straw");
  EXPECT_EQ(peer.run(3), (std::vector<double>{0.5, 0.25, 0.3}));
  EXPECT_EQ(peer.run(3), (std::vector<double>{0.5, 0.25, 0.3}));
}

TEST(Peer, AnswersOtherCommandsWithItsWholeOutput) {
  Peer peer(fake_peer("well"));
  const PeerAnswer answer = peer.ask("run 3", 3);
  EXPECT_EQ(answer.seconds.size(), 3U);
  EXPECT_TRUE(contains(answer.text, "\"event\":\"steps\""));
}

TEST(Peer, ThatReportsWhyItCannotRunIsAUsageError) {
  EXPECT_TRUE(contains(message_of<UsageError>([&] { run_peer(fake_peer("broken")); }),
                       "no such library here"));
}

TEST(Peer, ThatIsNoProgramIsAUsageError) {
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { run_peer({.command = {"no-such-program-anywhere"}}); }),
               "cannot start"));
}

TEST(Peer, ThatDiesBeforeItIsReadyIsNamedAtOnce) {
  EXPECT_TRUE(contains(message_of<PeerError>([&] { run_peer(fake_peer("dies")); }),
                       "waited for it to be ready"));
}

TEST(Peer, ThatDiesWhileItWorksIsNamedAtOnce) {
  const std::string message = message_of<PeerError>([&] { run_peer(fake_peer("lost")); });
  EXPECT_TRUE(message.find("3 steps") != std::string::npos ||
              message.find("send") != std::string::npos)
      << message;
}

TEST(Peer, ThatIsSilentIsGivenUpAtTheDeadline) {
  PeerOptions options = fake_peer("silent");
  options.ready_timeout = milliseconds(50);
  EXPECT_TRUE(contains(message_of<PeerError>([&] { run_peer(options); }),
                       "waited 0.05 s for it to be ready"));
}

TEST(Peer, ThatMeasuredFewerStepsThanRequestedIsRefused) {
  EXPECT_TRUE(contains(message_of<PeerError>([&] { run_peer(fake_peer("short")); }),
                       "expected the seconds of 3 steps"));
}

TEST(Peer, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    const Peer peer(fake_peer("well"));
    pid = peer.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(PeerCommand, IsSplitAtBlanks) {
  EXPECT_EQ(split_command("  python3 step.py\t--contiguous "),
            (std::vector<std::string>{"python3", "step.py", "--contiguous"}));
}

}  // namespace
}  // namespace syncopate::bench
