// Tests the messages that workers send to the data socket of one server.
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
  WorkerConnection first = service.connect("w0.1");
  first.send(hello_of(0, 1));
  first.receive<wire::DataWelcomeT>();
  WorkerConnection second = service.connect("w1.1");
  second.send(hello_of(1, 1));
  second.receive<wire::DataWelcomeT>();
  first.send(push_of(1, 1), kGradient);
  first.send(push_of(1, 1), kGradient);
  first.receive<wire::ConsumedT>();  // answers the second copy of the push; the first copy waits
  second.send(push_of(1, 1), kGradient);
  second.receive<wire::ValuesT>(1);
  const std::vector<EndedStep> steps = service.await_steps(2);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_TRUE(steps[0].is_applied);
  EXPECT_TRUE(steps[1].is_applied);
  EXPECT_TRUE(service.data.take_ended_steps().empty());
}

TEST(DataService, RefusesAnIncarnationThatWasRemovedBeforeItsHello) {
  DataServiceCase service({});
  service.data.remove_worker(0, 2);
  WorkerConnection caller = service.connect("w0");
  caller.send(hello_of(0, 1));
  caller.receive<wire::RefusedT>();
  caller.send(hello_of(0, 2));
  EXPECT_NE(caller.receive<wire::RefusedT>().line.find("worker 0 sent nothing"), std::string::npos);
  caller.send(hello_of(0, 3));
  caller.receive<wire::DataWelcomeT>();
}

TEST(DataService, UsesOnlyTheLatestConnectionOfAWorker) {
  DataServiceCase service({});
  WorkerConnection before = service.connect("w0.1");
  before.send(hello_of(0, 1));
  before.receive<wire::DataWelcomeT>();
  WorkerConnection after = service.connect("another");
  after.send(hello_of(0, 1));
  after.receive<wire::DataWelcomeT>();
  before.send(pull_of({0}));
  service.data.remove_worker(0, 1);
  before.send(pull_of({0}));
  before.send(hello_of(0, 2));
  before.receive<wire::DataWelcomeT>();
  EXPECT_FALSE(service.data.failure());
}

// A worker reads only its later socket, and would miss answers on the earlier socket. Under load a
// third greeting can arrive before the second one; the job then hung after a roll-back.
TEST(DataService, IgnoresAHelloOverASocketThatTheWorkerClosed) {
  DataServiceCase service({});
  WorkerConnection later = service.connect("w0.1.2");
  wire::DataHelloT hello = hello_of(0, 1);
  hello.call = 2;
  later.send(hello);
  later.receive<wire::DataWelcomeT>();
  WorkerConnection earlier = service.connect("w0.1.1");
  hello.call = 1;
  earlier.send(hello);
  hello.nonce = "another job's";
  earlier.send(hello);
  earlier.receive<wire::RefusedT>();  // the ignored greeting has been processed
  later.send(pull_of({0}));
  later.receive<wire::ValuesT>(1);
}

TEST(DataService, DropsAPullOfMoreBucketsThanExist) {
  DataServiceCase service({});
  WorkerConnection caller = service.connect("w0.1");
  caller.send(hello_of(0, 1));
  caller.receive<wire::DataWelcomeT>();
  caller.send(pull_of({0, 0}));
  caller.send(pull_of({0}));
  caller.receive<wire::ValuesT>(1);
  caller.send(wire::ProbeT());
  caller.receive<wire::ProbeAnswerT>();
}

TEST(DataService, CountsUnfitPushesAndLogsOnePerWorker) {
  DataServiceCase service({});
  WorkerConnection caller = service.connect("w0.1");
  caller.send(hello_of(0, 1));
  caller.receive<wire::DataWelcomeT>();
  ::testing::internal::CaptureStderr();
  caller.send(push_of(1, 1), std::vector<float>(7, 1.0F));
  wire::PushT other_codec = push_of(1, 1);
  other_codec.codec = wire::Codec::Bf16;
  caller.send(other_codec, kGradient);
  wire::PushT elsewhere = push_of(1, 1);
  elsewhere.bucket = 1;
  caller.send(elsewhere, kGradient);
  caller.send(push_of(1, 1));  // has no gradient
  wire::ProbeT probe;
  probe.sequence = 1;
  caller.send(probe);
  EXPECT_FALSE(caller.receive<wire::ProbeAnswerT>().is_known);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(service.data.unfit_messages(), 4);
  const std::string line =
      "dropped a push of bucket 0 by worker 0: 28 bytes are no gradient of 8 elements in F32";
  const std::size_t at = lines.find(line);
  ASSERT_NE(at, std::string::npos) << lines;
  EXPECT_EQ(lines.find("dropped", at + line.size()), std::string::npos) << lines;
  caller.send(push_of(1, 1), kGradient);
  EXPECT_EQ(caller.receive<wire::ValuesT>(1).sequence, 1U);
}

TEST(DataService, CountsUnfitWrites) {
  DataServiceCase service({});
  WorkerConnection caller = service.connect("w0.1");
  caller.send(hello_of(0, 1));
  caller.receive<wire::DataWelcomeT>();
  wire::WriteT write;
  write.version = 1;
  caller.send(write, std::vector<float>(9));
  write.state = true;
  caller.send(write, std::vector<float>(1));
  write.state = false;
  caller.send(write, std::vector<float>(8));
  caller.receive<wire::WrittenT>();
  EXPECT_EQ(service.data.unfit_messages(), 2);
}

TEST(DataService, DoesNotAcceptCompressedGradientsInSharedMemory) {
  const JobShape shape;
  DataServiceCase service(shape);
  const SegmentOwner segment(shape.bucket_sizes[0], shape.nonce);
  // The segment contains four indices, then four values: a valid compressed gradient.
  for (std::uint32_t i = 0; i < 4; ++i) segment.gradients().f32()[i] = std::bit_cast<float>(i);
  WorkerConnection caller = service.connect("w0.1");
  caller.send(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(caller.receive<wire::DataWelcomeT>().uses_segment);
  wire::PushT push = push_of(1, 1);
  push.in_segment = true;
  push.codec = wire::Codec::TopK;
  caller.send(push);
  caller.send(pull_of({0}));
  EXPECT_EQ(caller.receive<wire::ValuesT>().sequence, 0U);
  push.codec = wire::Codec::F32;
  std::ranges::fill(segment.gradients().f32(), 1.0F);
  caller.send(push);
  EXPECT_EQ(caller.receive<wire::ValuesT>().sequence, 1U);
  EXPECT_EQ(segment.values().f32()[0], -1.0F);
}

TEST(DataService, SendsValuesAsOfTheTimeOfTheRequest) {
  const JobShape shape{.workers = 2, .consistency = 0};
  DataServiceCase service(shape);
  const SegmentOwner segment(shape.bucket_sizes[0], shape.nonce);
  WorkerConnection second = service.connect("w1.1");
  second.send(hello_of(1, 1));
  second.receive<wire::DataWelcomeT>();
  WorkerConnection first = service.connect("w0.1");
  first.send(hello_of(0, 1));
  first.receive<wire::DataWelcomeT>();
  first.send(push_of(1, 1), kGradient);
  // The worker greets again with a segment, as if its shared memory could not be mapped before.
  first.send(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(first.receive<wire::DataWelcomeT>().uses_segment);
  second.send(push_of(1, 1), kGradient);
  EXPECT_FALSE(first.receive<wire::ValuesT>(1).in_segment);
}

}  // namespace
}  // namespace syncopate::ps::testing
