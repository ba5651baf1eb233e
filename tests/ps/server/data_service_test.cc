// Tests the messages that workers send to the data socket of one server.
#include "ps/server/data_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "ps/net/descriptor_passing.h"
#include "ps/net/segment.h"
#include "tests/ps/server/data_service_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps::testing {
namespace {

const std::vector<float> kGradient(8, 1.0F);

TEST(DataService, ReportsAPushOnceEvenIfItIsSentTwice) {
  DataServiceCase service({.workers = 2, .consistency = 0});
  WorkerConnection first = service.welcomed(hello_of(0, 1));
  WorkerConnection second = service.welcomed(hello_of(1, 1));
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

// Of 8 MiB, each of 64 workers has a part of 128 KiB, which is less than a message.
TEST(DataService, LetsAWorkerWithoutSharedMemoryHaveTwoMessagesUnderWay) {
  JobShape shape{.workers = 64, .bucket_sizes = {1000, 1 << 18}};
  for (const auto& [bf16, credit] : {std::pair{false, 2 << 20}, std::pair{true, 1 << 20}}) {
    shape.bf16_values = bf16;
    DataServiceCase service(shape);
    WorkerConnection worker = service.connect();
    worker.send(hello_of(0, 1));
    EXPECT_EQ(worker.receive<wire::DataWelcomeT>().credit_bytes, credit);
  }
}

TEST(DataService, RefusesAnIncarnationThatWasRemovedBeforeItsHello) {
  DataServiceCase service({});
  service.data.remove_worker(0, 2);
  WorkerConnection caller = service.connect();
  caller.send(hello_of(0, 1));
  caller.receive<wire::RefusedT>();
  caller.send(hello_of(0, 2));
  EXPECT_TRUE(contains(caller.receive<wire::RefusedT>().line, "worker 0 sent nothing"));
  caller.send(hello_of(0, 3));
  caller.receive<wire::DataWelcomeT>();
}

TEST(DataService, UsesOnlyTheLatestConnectionOfAWorker) {
  DataServiceCase service({});
  WorkerConnection before = service.welcomed(hello_of(0, 1));
  WorkerConnection after = service.welcomed(hello_of(0, 1));
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
  WorkerConnection later = service.connect();
  wire::DataHelloT hello = hello_of(0, 1);
  hello.call = 2;
  later.send(hello);
  later.receive<wire::DataWelcomeT>();
  WorkerConnection earlier = service.connect();
  hello.call = 1;
  earlier.send(hello);
  hello.shard = 9;  // is refused
  earlier.send(hello);
  earlier.receive<wire::RefusedT>();  // the ignored greeting has been processed
  later.send(pull_of({0}));
  later.receive<wire::ValuesT>(1);
}

// A stranger that knows neither the nonce nor the token of a session can neither read nor write.
TEST(DataService, DropsMessagesWithoutTheTokenOfTheirConnection) {
  DataServiceCase service({.workers = 2});
  WorkerConnection worker = service.welcomed(hello_of(0, 1));
  WorkerConnection stranger(service.context, service.data.port(), "guessed");
  wire::WriteT write;
  write.version = 7;
  wire::ReadSnapshotT read;
  ::testing::internal::CaptureStderr();
  for (const std::uint64_t token : {std::uint64_t{0}, worker.session, worker.session + 1}) {
    stranger.session = token;
    stranger.send(write, std::vector<float>(8, 42.0F));
    stranger.send(push_of(1, 1), kGradient);
    stranger.send(pull_of({0}));
    stranger.send(read);
    stranger.send(wire::ProbeT());
  }
  stranger.send(hello_of(1, 1));
  stranger.receive<wire::RefusedT>();  // the first answer: all messages before have been dropped
  const std::uint64_t own = std::exchange(worker.session, 0);
  worker.send(push_of(1, 1), kGradient);
  worker.session = own;
  worker.send(push_of(1, 1), kGradient);
  EXPECT_EQ(worker.receive<wire::ValuesT>(1).version, 2U);
  EXPECT_EQ(service.served->shard->view(0).values[0], -1.0F);
  EXPECT_EQ(service.data.stranger_messages(), 17);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  const std::string line = "dropped a message from 127.0.0.1: a Write of no session of this job";
  const std::size_t at = lines.find(line);
  ASSERT_NE(at, std::string::npos) << lines;
  EXPECT_FALSE(contains(lines, "a Pull of no session")) << "logged twice: " << lines;
}

// A worker that fails may have pushes under way, and its session ends first.
TEST(DataService, DropsLateMessagesOfAnEndedSessionWithoutALine) {
  DataServiceCase service({.workers = 2});
  WorkerConnection worker = service.welcomed(hello_of(0, 1));
  WorkerConnection other = service.welcomed(hello_of(1, 1));
  ::testing::internal::CaptureStderr();
  service.data.remove_worker(0, 1);
  // The data thread removes the worker between two messages.
  for (int i = 0; i < 2; ++i) {
    other.send(wire::ProbeT{});
    other.receive<wire::ProbeAnswerT>();
  }
  worker.send(push_of(1, 1), kGradient);
  worker.send(hello_of(0, 1));
  worker.receive<wire::RefusedT>();  // the late push has been dropped
  EXPECT_EQ(service.served->shard->view(0).version, 1U);
  EXPECT_EQ(service.data.stranger_messages(), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(DataService, AppliesAPushOnceThatComesOverTwoConnections) {
  DataServiceCase service({});
  WorkerConnection before = service.welcomed(hello_of(0, 1));
  before.send(push_of(1, 1), kGradient);
  EXPECT_EQ(before.receive<wire::ValuesT>(1).version, 2U);
  wire::DataHelloT hello = hello_of(0, 1);
  hello.call = 1;
  WorkerConnection after = service.welcomed(hello);
  EXPECT_NE(after.session, before.session);
  before.send(push_of(2, 2), kGradient);  // late: the worker sends it again over its new connection
  hello.shard = 9;                        // is refused
  before.send(hello);
  before.receive<wire::RefusedT>();  // the late push has been dropped
  EXPECT_EQ(service.served->shard->view(0).version, 2U);
  after.send(push_of(1, 1), kGradient);
  after.receive<wire::ValuesT>(1);
  after.send(push_of(2, 2), kGradient);
  EXPECT_EQ(after.receive<wire::ValuesT>(1).version, 3U);
  EXPECT_EQ(service.served->shard->view(0).values[0], -2.0F);
  EXPECT_EQ(service.await_steps(2).size(), 2U);
}

// A worker sends its greeting again while the answer is under way, and uses the first token then.
TEST(DataService, GivesARepeatedHelloTheSameToken) {
  DataServiceCase service({});
  WorkerConnection worker = service.welcomed(hello_of(0, 1));
  const std::uint64_t first = worker.session;
  EXPECT_NE(first, 0U);
  worker.send(hello_of(0, 1));
  worker.receive<wire::DataWelcomeT>();
  EXPECT_EQ(worker.session, first);
}

// Taken for the worker's last push, it would make all its other pushes repeated ones: the job hung.
TEST(DataService, RefusesAPushFarAheadOfTheWorkersLastOne) {
  DataServiceCase service({});
  WorkerConnection worker = service.welcomed(hello_of(0, 1));
  worker.send(push_of(1, 1), kGradient);
  worker.receive<wire::ValuesT>(1);
  ::testing::internal::CaptureStderr();
  worker.send(push_of(1000000, 2), kGradient);
  worker.send(push_of(2, 2), kGradient);
  EXPECT_EQ(worker.receive<wire::ValuesT>(1).sequence, 2U);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(lines,
                       "dropped a push of bucket 0 by worker 0: its sequence 1000000 is far ahead "
                       "of 1, that of the last push"));
  EXPECT_EQ(service.data.unfit_messages(), 1);
  EXPECT_EQ(service.served->shard->view(0).values[0], -2.0F);
}

// The second worker never pushes. No message comes when the grace is over.
TEST(DataService, MergesTheQuorumWhenTheGraceIsOver) {
  DataServiceCase service({.workers = 3, .consistency = 3, .quorum = 2, .grace = 0.05});
  WorkerConnection first = service.welcomed(hello_of(0, 1));
  WorkerConnection second = service.welcomed(hello_of(1, 1));
  service.welcomed(hello_of(2, 1));
  wire::PushT push = push_of(1, 1);
  push.samples = 3;
  first.send(push, kGradient);
  push.samples = 1;
  second.send(push, std::vector<float>(8, 5.0F));
  EXPECT_EQ(first.receive<wire::ValuesT>(1).version, 2U);
  EXPECT_EQ(second.receive<wire::ValuesT>(1).version, 2U);
  EXPECT_EQ(service.served->shard->view(0).values[0], -2.0F);
}

TEST(DataService, RefusesAPushWithAnImpossibleNumberOfSamples) {
  DataServiceCase service({});
  WorkerConnection worker = service.welcomed(hello_of(0, 1));
  ::testing::internal::CaptureStderr();
  for (const std::int64_t samples : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    wire::PushT push = push_of(1, 1);
    push.samples = samples;
    worker.send(push, kGradient);
  }
  worker.send(push_of(1, 1), kGradient);
  EXPECT_EQ(worker.receive<wire::ValuesT>(1).sequence, 1U);
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "it has -1 samples"));
  EXPECT_EQ(service.data.unfit_messages(), 2);
}

TEST(DataService, DropsAPullOfMoreBucketsThanExist) {
  DataServiceCase service({});
  WorkerConnection caller = service.welcomed(hello_of(0, 1));
  caller.send(pull_of({0, 0}));
  caller.send(pull_of({0}));
  caller.receive<wire::ValuesT>(1);
  caller.send(wire::ProbeT());
  caller.receive<wire::ProbeAnswerT>();
}

TEST(DataService, CountsUnfitPushesAndLogsOnePerWorker) {
  DataServiceCase service({});
  WorkerConnection caller = service.welcomed(hello_of(0, 1));
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
  probe.pushes.emplace_back(0, 1);
  caller.send(probe);
  EXPECT_EQ(caller.receive<wire::ProbeAnswerT>().unknown.size(), 1U);
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

TEST(DataService, AnswersAProbeOfManyPushesWithThoseThatItDoesNotKnow) {
  // Under ssp, worker 0's answers wait for worker 1.
  DataServiceCase service({.workers = 2, .consistency = 1, .bucket_sizes = {8, 8, 8}});
  WorkerConnection slower = service.welcomed(hello_of(1, 1));
  WorkerConnection caller = service.welcomed(hello_of(0, 1));
  wire::ProbeT probe;
  for (const int bucket : {0, 2}) {
    wire::PushT push = push_of(1, 1);
    push.bucket = bucket;
    push.ends_step = false;
    caller.send(push, kGradient);
    caller.receive<wire::ConsumedT>();
  }
  probe.pushes = {{0, 1}, {1, 1}, {2, 1}, {2, 2}, {99, 1}};
  caller.send(probe);
  const auto unknown = caller.receive<wire::ProbeAnswerT>().unknown;
  ASSERT_EQ(unknown.size(), 3U);
  EXPECT_EQ(unknown[0].bucket(), 1);
  EXPECT_EQ(unknown[1].sequence(), 2U);
  EXPECT_EQ(unknown[2].bucket(), 99);
  slower.send(probe);
  EXPECT_EQ(slower.receive<wire::ProbeAnswerT>().unknown.size(), 5U) << "another worker's pushes";
}

TEST(DataService, CountsUnfitWrites) {
  DataServiceCase service({});
  WorkerConnection caller = service.welcomed(hello_of(0, 1));
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
  WorkerConnection caller = service.connect();
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
  WorkerConnection second = service.welcomed(hello_of(1, 1));
  WorkerConnection first = service.welcomed(hello_of(0, 1));
  first.send(push_of(1, 1), kGradient);
  // The worker greets again with a segment, as if its shared memory could not be mapped before.
  first.send(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(first.receive<wire::DataWelcomeT>().uses_segment);
  second.send(push_of(1, 1), kGradient);
  EXPECT_FALSE(first.receive<wire::ValuesT>(1).in_segment);
}

// The descriptor of a worker that has no CPU comes late or never.
TEST(DataService, ServesOtherWorkersWhileItMapsTheSegmentOfOne) {
  DataServiceCase service({.workers = 2});
  const std::string name = random_socket_name();
  FileDescriptor does_not_answer = listen_at_name(name);
  WorkerConnection late = service.connect();
  late.send(hello_of(0, 1, name));
  WorkerConnection other = service.connect();
  other.send(hello_of(1, 1));
  other.receive<wire::DataWelcomeT>();
  other.send(push_of(1, 1), kGradient);
  other.receive<wire::ValuesT>(1);
  EXPECT_TRUE(late.has_received_nothing());
  does_not_answer = FileDescriptor();
  EXPECT_FALSE(late.receive<wire::DataWelcomeT>().uses_segment);
}

}  // namespace
}  // namespace syncopate::ps::testing
