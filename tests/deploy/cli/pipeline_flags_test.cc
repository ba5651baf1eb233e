// Tests which flags of train --strategy pipeline are refused together, and with which line.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

const Environment kAlone{Environment::Variables{}};
// Worker 0 of 2.
const Environment kTasks({{"SYNCOPATE_ROLE", "worker"},
                          {"SYNCOPATE_INDEX", "0"},
                          {"SYNCOPATE_WORKERS", "2"},
                          {"SYNCOPATE_NONCE", "a"},
                          {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});

// Returns the line with which the flags are refused; "" if they are not.
std::string error_of(const Arguments& more, const Environment& environment = kAlone) {
  Arguments words = as_words("--strategy pipeline --share-devices", more);
  return message_if_thrown<UsageError>([&] { (void)parse_train(words, environment); });
}

TEST(APipelinesFlags, DelayNoSteps) {
  for (const Arguments& flags :
       {Arguments{"--service-time", "constant:5"}, {"--pause", "worker=0,at=1s,for=1s"}}) {
    for (const Environment& where : {kAlone, kTasks}) {
      const std::string line = error_of(flags, where);
      EXPECT_TRUE(line.starts_with(flags.front() + ": delays whole steps")) << line;
      EXPECT_TRUE(contains(line, "compare --clock virtual"));
    }
  }
}

TEST(APipelinesFlags, CutBehindOneNodeLessThanTasks) {
  EXPECT_TRUE(contains(error_of({"--cut", "conv1,fc1"}, kTasks), "give 1 node, or start 3 tasks"));
  EXPECT_EQ(error_of({"--cut", "conv1,"}), "--cut conv1,: expected NODE,..., none of them empty");
  EXPECT_EQ(error_of({"--cut", ""}), "--cut '': expected NODE,..., none of them empty");
}

TEST(APipelinesFlags, GiveEachMicroBatchASample) {
  EXPECT_EQ(error_of({"--accumulate", "100", "--batch-size", "50"}),
            "--accumulate 100: a step of --batch-size 50 has 50 samples, fewer than micro-batches; "
            "give at most --accumulate 50, or a larger --batch-size");
  EXPECT_EQ(error_of({"--accumulate", "50", "--batch-size", "50"}), "");
  EXPECT_EQ(error_of({"--accumulate", "100", "--batch-size-per-replica", "1"}), "");
}

TEST(APipelinesFlags, NameNoCollectiveThatTheJobDoesNotUse) {
  EXPECT_EQ(error_of({"--collective", "ring"}),
            "--collective ring: the stages of --strategy pipeline are in one process here; leave "
            "it out");
  EXPECT_TRUE(contains(error_of({"--collective", "local"}, kTasks), "by shared memory and TCP"));
  for (const char* other : {"mpi", "nccl"}) {
    EXPECT_NE(error_of({"--collective", other}), "");
    EXPECT_NE(error_of({"--collective", other}, kTasks), "");
  }
  EXPECT_EQ(error_of({"--collective", "local"}), "");
  EXPECT_EQ(error_of({"--collective", "ring"}, kTasks), "");
}

}  // namespace
}  // namespace syncopate
