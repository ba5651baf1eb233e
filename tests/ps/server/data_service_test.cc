// What a server makes of workers that come again, come late, or ask for too much.
#include "ps/server/data_service.h"

#include <gtest/gtest.h>

#include "tests/ps/server/data_service_case.h"

namespace syncopate::ps::testing {
namespace {

const std::vector<float> kGradient(8, 1.0F);

TEST(ADataService, TellsWhatBecameOfAPushOnceHoweverOftenItWasSent) {
  DataServiceCase service({.workers = 2, .consistency = 0});
  Caller first = service.call("w0.1");
  first.say(hello_of(0, 1));
  first.take<wire::DataWelcomeT>();
  Caller second = service.call("w1.1");
  second.say(hello_of(1, 1));
  second.take<wire::DataWelcomeT>();
  first.say(push_of(1, 1), kGradient);
  first.say(push_of(1, 1), kGradient);
  first.take<wire::ConsumedT>();  // the one sent again, as the first one waits
  second.say(push_of(1, 1), kGradient);
  second.take<wire::ValuesT>(1);
  const std::vector<StepNews> news = service.await_news(2);
  ASSERT_EQ(news.size(), 2U);
  EXPECT_TRUE(news[0].is_applied);
  EXPECT_TRUE(news[1].is_applied);
  EXPECT_TRUE(service.data.take_news().empty());
}

TEST(ADataService, RefusesAnIncarnationThatWasGivenUpBeforeItGreeted) {
  DataServiceCase service({});
  service.data.forget(0, 2);
  Caller caller = service.call("w0");
  caller.say(hello_of(0, 1));
  caller.take<wire::RefusedT>();
  caller.say(hello_of(0, 2));
  EXPECT_NE(caller.take<wire::RefusedT>().line.find("worker 0 was silent"), std::string::npos);
  caller.say(hello_of(0, 3));
  caller.take<wire::DataWelcomeT>();
}

TEST(ADataService, HearsAWorkerThatCallsUnderAnotherNameUnderThatOneAlone) {
  DataServiceCase service({});
  Caller before = service.call("w0.1");
  before.say(hello_of(0, 1));
  before.take<wire::DataWelcomeT>();
  Caller after = service.call("another");
  after.say(hello_of(0, 1));
  after.take<wire::DataWelcomeT>();
  before.say(pull_of({0}));
  service.data.forget(0, 1);
  before.say(pull_of({0}));
  before.say(hello_of(0, 2));
  before.take<wire::DataWelcomeT>();
  EXPECT_FALSE(service.data.failure());
}

// The worker reads its later socket only: answers through the earlier one would reach nobody. Seen
// after a roll-back under load: worker 0's third call was heard before its second, and the job
// stood still for ever.
TEST(ADataService, PassesOverAGreetingThroughASocketThatWasGivenUp) {
  DataServiceCase service({});
  Caller later = service.call("w0.1.2");
  wire::DataHelloT hello = hello_of(0, 1);
  hello.call = 2;
  later.say(hello);
  later.take<wire::DataWelcomeT>();
  Caller earlier = service.call("w0.1.1");
  hello.call = 1;
  earlier.say(hello);
  hello.nonce = "another job's";
  earlier.say(hello);
  earlier.take<wire::RefusedT>();  // so it has come
  later.say(pull_of({0}));
  later.take<wire::ValuesT>(1);
}

TEST(ADataService, AnswersNoPullOfMoreBucketsThanThereAre) {
  DataServiceCase service({});
  Caller caller = service.call("w0.1");
  caller.say(hello_of(0, 1));
  caller.take<wire::DataWelcomeT>();
  caller.say(pull_of({0, 0}));
  caller.say(pull_of({0}));
  caller.take<wire::ValuesT>(1);
  caller.say(wire::ProbeT());
  caller.take<wire::ProbeAnswerT>();
}

TEST(ADataService, CountsPushesThatDoNotFitAndSaysSoOncePerWorker) {
  DataServiceCase service({});
  Caller caller = service.call("w0.1");
  caller.say(hello_of(0, 1));
  caller.take<wire::DataWelcomeT>();
  ::testing::internal::CaptureStderr();
  caller.say(push_of(1, 1), std::vector<float>(7, 1.0F));
  wire::PushT other_codec = push_of(1, 1);
  other_codec.codec = wire::Codec::Bf16;
  caller.say(other_codec, kGradient);
  wire::PushT elsewhere = push_of(1, 1);
  elsewhere.bucket = 1;
  caller.say(elsewhere, kGradient);
  caller.say(push_of(1, 1));  // with nothing behind it
  wire::ProbeT probe;
  probe.sequence = 1;
  caller.say(probe);
  EXPECT_FALSE(caller.take<wire::ProbeAnswerT>().is_known);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(service.data.unfit_messages(), 4);
  const std::string line =
      "dropped a push of bucket 0 by worker 0: 28 bytes are no gradient of 8 elements in F32";
  const std::size_t at = lines.find(line);
  ASSERT_NE(at, std::string::npos) << lines;
  EXPECT_EQ(lines.find("dropped", at + line.size()), std::string::npos) << lines;
  caller.say(push_of(1, 1), kGradient);
  EXPECT_EQ(caller.take<wire::ValuesT>(1).sequence, 1U);
}

TEST(ADataService, CountsWritesThatDoNotFit) {
  DataServiceCase service({});
  Caller caller = service.call("w0.1");
  caller.say(hello_of(0, 1));
  caller.take<wire::DataWelcomeT>();
  wire::WriteT write;
  write.version = 1;
  caller.say(write, std::vector<float>(9));
  write.state = true;
  caller.say(write, std::vector<float>(1));
  write.state = false;
  caller.say(write, std::vector<float>(8));
  caller.take<wire::WrittenT>();
  EXPECT_EQ(service.data.unfit_messages(), 2);
}

}  // namespace
}  // namespace syncopate::ps::testing
