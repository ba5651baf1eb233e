// Tests the communication with a peer process. A shell script with fixed answers is the peer, so
// the test needs no PyTorch.
#include "bench/harness/peer.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using std::chrono::milliseconds;

PeerOptions fake_peer(const std::string& behaviour) {
  return {.command = {"sh", SYNCOPATE_FAKE_PEER, behaviour},
          .ready_timeout = milliseconds(10'000),
          .answer_timeout = milliseconds(10'000)};
}

template <typename ErrorType>
std::string message_of(const PeerOptions& options) {
  try {
    Peer peer(options);
    peer.run(3);
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

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
  EXPECT_NE(answer.text.find("\"event\":\"steps\""), std::string::npos);
}

TEST(Peer, ThatReportsWhyItCannotRunIsAUsageError) {
  EXPECT_NE(message_of<UsageError>(fake_peer("broken")).find("no such library here"),
            std::string::npos);
}

TEST(Peer, ThatIsNoProgramIsAUsageError) {
  EXPECT_NE(message_of<UsageError>({.command = {"no-such-program-anywhere"}}).find("cannot start"),
            std::string::npos);
}

TEST(Peer, ThatDiesBeforeItIsReadyIsNamedAtOnce) {
  EXPECT_NE(message_of<PeerError>(fake_peer("dies")).find("waited for it to be ready"),
            std::string::npos);
}

TEST(Peer, ThatDiesWhileItWorksIsNamedAtOnce) {
  const std::string message = message_of<PeerError>(fake_peer("lost"));
  EXPECT_TRUE(message.find("3 steps") != std::string::npos ||
              message.find("send") != std::string::npos)
      << message;
}

TEST(Peer, ThatIsSilentIsGivenUpAtTheDeadline) {
  PeerOptions options = fake_peer("silent");
  options.ready_timeout = milliseconds(50);
  EXPECT_NE(message_of<PeerError>(options).find("waited 0.05 s for it to be ready"),
            std::string::npos);
}

TEST(Peer, ThatMeasuredFewerStepsThanRequestedIsRefused) {
  EXPECT_NE(message_of<PeerError>(fake_peer("short")).find("expected the seconds of 3 steps"),
            std::string::npos);
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
