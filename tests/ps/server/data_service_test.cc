// Messages of workers to the data socket of one server.
#include "ps/server/data_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "ps/net/segment.h"
#include "tests/ps/server/data_service_case.h"

namespace syncopate::ps::testing {
namespace {

const std::vector<float> kGradient(8, 1.0F);

TEST(DataService, ReportsAPushOnceEvenIfItIsSentTwice) {
  DataServiceCase service({.workers = 2, .consistency = 0});
  Caller first = service.call("w0.1");
  first.say(hello_of(0, 1));
  first.take<wire::DataWelcomeT>();
  Caller second = service.call("w1.1");
  second.say(hello_of(1, 1));
  second.take<wire::DataWelcomeT>();
  first.say(push_of(1, 1), kGradient);
  first.say(push_of(1, 1), kGradient);
  first.take<wire::ConsumedT>();  // of the second copy, while the first one waits
  second.say(push_of(1, 1), kGradient);
  second.take<wire::ValuesT>(1);
  const std::vector<EndedStep> news = service.await_news(2);
  ASSERT_EQ(news.size(), 2U);
  EXPECT_TRUE(news[0].is_applied);
  EXPECT_TRUE(news[1].is_applied);
  EXPECT_TRUE(service.data.take_ended_steps().empty());
}

TEST(DataService, RefusesAnIncarnationThatWasRemovedBeforeItGreeted) {
  DataServiceCase service({});
  service.data.remove_worker(0, 2);
  Caller caller = service.call("w0");
  caller.say(hello_of(0, 1));
  caller.take<wire::RefusedT>();
  caller.say(hello_of(0, 2));
  EXPECT_NE(caller.take<wire::RefusedT>().line.find("worker 0 sent nothing"), std::string::npos);
  caller.say(hello_of(0, 3));
  caller.take<wire::DataWelcomeT>();
}

TEST(DataService, UsesOnlyTheLatestConnectionOfAWorker) {
  DataServiceCase service({});
  Caller before = service.call("w0.1");
  before.say(hello_of(0, 1));
  before.take<wire::DataWelcomeT>();
  Caller after = service.call("another");
  after.say(hello_of(0, 1));
  after.take<wire::DataWelcomeT>();
  before.say(pull_of({0}));
  service.data.remove_worker(0, 1);
  before.say(pull_of({0}));
  before.say(hello_of(0, 2));
  before.take<wire::DataWelcomeT>();
  EXPECT_FALSE(service.data.failure());
}

// The worker reads only its later socket, and would miss answers on the earlier one. Under load a
// third greeting can arrive before the second one; the job then hung after a roll-back.
TEST(DataService, IgnoresAGreetingOverASocketThatTheWorkerClosed) {
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
  earlier.take<wire::RefusedT>();  // the ignored greeting has been processed
  later.say(pull_of({0}));
  later.take<wire::ValuesT>(1);
}

TEST(DataService, DropsAPullOfMoreBucketsThanExist) {
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

TEST(DataService, CountsUnfitPushesAndLogsOnePerWorker) {
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
  caller.say(push_of(1, 1));  // without a gradient
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

TEST(DataService, CountsUnfitWrites) {
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

TEST(DataService, DoesNotAcceptCompressedGradientsInSharedMemory) {
  const JobShape shape;
  DataServiceCase service(shape);
  const SegmentOwner segment(shape.bucket_sizes[0], shape.nonce);
  // Four indices, then four values: a valid compressed gradient.
  for (std::uint32_t i = 0; i < 4; ++i) segment.gradients().f32()[i] = std::bit_cast<float>(i);
  Caller caller = service.call("w0.1");
  caller.say(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(caller.take<wire::DataWelcomeT>().uses_segment);
  wire::PushT push = push_of(1, 1);
  push.in_segment = true;
  push.codec = wire::Codec::TopK;
  caller.say(push);
  caller.say(pull_of({0}));
  EXPECT_EQ(caller.take<wire::ValuesT>().sequence, 0U);
  push.codec = wire::Codec::F32;
  std::ranges::fill(segment.gradients().f32(), 1.0F);
  caller.say(push);
  EXPECT_EQ(caller.take<wire::ValuesT>().sequence, 1U);
  EXPECT_EQ(segment.values().f32()[0], -1.0F);
}

TEST(DataService, SendsValuesAsOfTheTimeOfTheRequest) {
  const JobShape shape{.workers = 2, .consistency = 0};
  DataServiceCase service(shape);
  const SegmentOwner segment(shape.bucket_sizes[0], shape.nonce);
  Caller second = service.call("w1.1");
  second.say(hello_of(1, 1));
  second.take<wire::DataWelcomeT>();
  Caller first = service.call("w0.1");
  first.say(hello_of(0, 1));
  first.take<wire::DataWelcomeT>();
  first.say(push_of(1, 1), kGradient);
  // Its shared memory could not be mapped before.
  first.say(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(first.take<wire::DataWelcomeT>().uses_segment);
  second.say(push_of(1, 1), kGradient);
  EXPECT_FALSE(first.take<wire::ValuesT>(1).in_segment);
}

}  // namespace
}  // namespace syncopate::ps::testing
