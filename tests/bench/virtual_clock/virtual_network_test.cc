// Tests the formulas of virtual links, with numbers that can be checked by hand.
#include "bench/virtual_clock/time_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/virtual_clock/step_times.h"
#include "models/graph/graph.h"

namespace syncopate::bench {
namespace {

using std::chrono::milliseconds;

constexpr Link kSlow{.delay_seconds = 0.001, .bytes_per_second = 1000.0};  // A byte takes 1 ms.

TEST(VirtualNetwork, TakesNoTimeWithoutAnEmulatedLink) {
  Network network({}, 1, 1);
  EXPECT_EQ(network.up(milliseconds(5), 0, 0, 1 << 30), milliseconds(5));
  EXPECT_EQ(ring_all_reduce_time({}, 8, 1 << 30), milliseconds(0));
}

TEST(VirtualNetwork, AddsDelayAndBytesOverRate) {
  Network network(kSlow, 1, 1);
  EXPECT_EQ(network.up(milliseconds(0), 0, 0, 10), milliseconds(11));
}

TEST(VirtualNetwork, DelaysMessagesToOneServerByEachOther) {
  Network network(kSlow, 2, 1);
  EXPECT_EQ(network.up(milliseconds(0), 0, 0, 10), milliseconds(11));
  EXPECT_EQ(network.up(milliseconds(4), 1, 0, 10), milliseconds(21));
  // Traffic from server to worker does not wait for traffic in the other direction.
  EXPECT_EQ(network.down(milliseconds(4), 0, 1, 10), milliseconds(15));
}

TEST(VirtualNetwork, DelaysMessagesOfOneWorkerByEachOther) {
  Network network(kSlow, 1, 2);
  EXPECT_EQ(network.up(milliseconds(0), 0, 0, 10), milliseconds(11));
  EXPECT_EQ(network.up(milliseconds(0), 0, 1, 10), milliseconds(21));
}

// Here 100 workers send 10 bytes to each of 4 servers, beginning with different servers.
TEST(VirtualNetwork, FillsTheLinksOfSeveralServersAtOnce) {
  Network network(kSlow, 100, 4);
  VirtualTime last{0};
  for (int w = 0; w < 100; ++w) {
    for (int i = 0; i < 4; ++i) {
      last = std::max(last, network.up(milliseconds(0), w, (w + i) % 4, 10));
    }
  }
  // Each server receives 100 messages, one after another in 10 ms each, once the first one arrives.
  EXPECT_LT(last, milliseconds(1100));
}

TEST(VirtualNetwork, ComputesARingAllReduce) {
  // A ring all-reduce of 40 bytes over 4 ranks takes 6 messages of 10 bytes, each of which takes 11
  // ms.
  EXPECT_EQ(ring_all_reduce_time(kSlow, 4, 40), milliseconds(66));
  EXPECT_EQ(ring_all_reduce_bytes(4, 40), 60);
  EXPECT_EQ(ring_all_reduce_time(kSlow, 1, 40), milliseconds(0));
}

FaultInjection constant(double delay_milliseconds, const Link& link) {
  return {
      .service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = delay_milliseconds},
      .link = link};
}

// 20 bytes of values on one server.
const TimedBuckets kServed{.bytes = {20}, .owner = {0}};

TEST(StepTimes, OfMirroredReplicasIncludeTheAllReduce) {
  StepTimes times({.workers = 2, .buckets = {.bytes = {20}}}, constant(100.0, kSlow), 1);
  // The all-reduce of 2 workers consists of 2 messages of 10 bytes.
  EXPECT_EQ(times.step(1, {}), milliseconds(122));
  EXPECT_EQ(times.step(2, {}), milliseconds(244));
  EXPECT_EQ(times.accounts()[0].communication, milliseconds(44));
  EXPECT_EQ(times.accounts()[0].bytes_sent, 40);
}

TEST(StepTimes, OfWorkersWithAServerIncludeBothDirections) {
  StepTimes times({.workers = 2, .buckets = kServed}, constant(100.0, kSlow), 1);
  // The gradients of the two workers arrive at 111 and 121 ms. From 121 ms on, the server sends
  // each worker 20 bytes, which arrive at 142 and 162 ms.
  const std::vector<std::int64_t> gradient_bytes{10};
  EXPECT_EQ(times.step(1, gradient_bytes), milliseconds(162));
  EXPECT_EQ(times.accounts()[0].peers, milliseconds(10));
  EXPECT_EQ(times.accounts()[0].communication, milliseconds(11 + 21));
  EXPECT_EQ(times.accounts()[1].peers, milliseconds(0));
  EXPECT_EQ(times.accounts()[1].bytes_received, 20);
}

TEST(StepTimes, OfWorkersWithAServerIncludeItsUpdate) {
  FaultInjection faults = constant(100.0, kSlow);
  faults.server_bytes_per_second = 1000.0;
  StepTimes times({.workers = 2, .buckets = kServed}, faults, 1);
  // As above, but the update from two gradients of 10 bytes takes 20 ms.
  const std::vector<std::int64_t> gradient_bytes{10};
  EXPECT_EQ(times.step(1, gradient_bytes), milliseconds(182));
  EXPECT_EQ(times.accounts()[0].peers, milliseconds(10));
  EXPECT_EQ(times.accounts()[0].servers, milliseconds(20));
  EXPECT_EQ(times.accounts()[1].servers, milliseconds(20));
  EXPECT_EQ(times.accounts()[1].all(), milliseconds(182));
}

// Buckets of two layers with equal work. A step of 120 ms uses bucket 1 at its beginning and bucket
// 0 after 20 ms; it completes bucket 0 after 80 ms and bucket 1 at its end.
TimedBuckets two_layers(std::vector<int> owner) {
  GraphBuilder builder("two");
  const NodeId x = builder.dense(builder.input({10}, {}), "first", 10);
  const Graph graph = builder.finish(builder.dense(x, "second", 10));
  const ArenaLayout layout = graph.parameter_layout();
  return {.profile = {graph, layout, plan_buckets(layout, 300)},
          .bytes = {40, 40},
          .owner = std::move(owner)};
}

TEST(TimedBuckets, AreJoinedPerServer) {
  const Graph graph = [] {
    GraphBuilder builder("four");
    NodeId x = builder.input({10}, {});
    for (const char* name : {"a", "b", "c", "d"}) x = builder.dense(x, name, 10);
    return builder.finish(x);
  }();
  const ArenaLayout layout = graph.parameter_layout();
  const TimedBuckets four{.profile = {graph, layout, plan_buckets(layout, 300)},
                          .bytes = {1, 2, 4, 8},
                          .owner = {0, 1, 0, 1}};
  const TimedBuckets two = joined(four, 1);
  EXPECT_EQ(two.bytes, (std::vector<std::int64_t>{5, 10}));
  EXPECT_EQ(two.owner, (std::vector<int>{0, 1}));
  // Buckets 0 and 2 are used with bucket 2, at a quarter of the forward pass; 1 and 3 at its start.
  EXPECT_DOUBLE_EQ(two.profile.use(0), four.profile.use(2));
  EXPECT_DOUBLE_EQ(two.profile.use(1), 0.0);
  EXPECT_EQ(joined(four, 8).bytes, four.bytes);
}

TEST(StepTimes, OverlapAnAllReduceWithTheBackwardPass) {
  StepTimes times({.workers = 2, .buckets = two_layers({})}, constant(120.0, kSlow), 1);
  // An all-reduce of a bucket takes two messages of 21 ms. For bucket 0, it ends at 122 ms, when
  // bucket 1 is complete for 2 ms.
  EXPECT_EQ(times.step(1, {}), milliseconds(80 + 42 + 42));
  EXPECT_EQ(times.accounts()[0].communication, milliseconds(44));
  EXPECT_EQ(times.accounts()[0].bytes_sent, 80);
}

TEST(StepTimes, OverlapMessagesOfServersWithBothPasses) {
  StepTimes times({.workers = 1, .buckets = two_layers({0, 0})}, constant(120.0, kSlow), 1);
  const std::vector<std::int64_t> bytes{40, 40};
  // Bucket 0 is sent at 80 ms, and its values are there at 80 + 41 + 41 = 162 ms; the values of
  // bucket 1 at 120 + 41 + 41 = 202 ms, when the next step begins.
  EXPECT_EQ(times.step(1, bytes), milliseconds(202));
  EXPECT_EQ(times.step(2, bytes), milliseconds(404));
  EXPECT_EQ(times.accounts()[0].communication, milliseconds(2 * 82));
  EXPECT_EQ(times.accounts()[0].all(), milliseconds(404));
}

// Bucket 0 is on a server that needs long for its update, so its values arrive after those of the
// first layer. The next step begins, and waits for them before its second layer.
TEST(StepTimes, BeginAStepBeforeTheValuesOfLaterLayersAreThere) {
  FaultInjection faults = constant(120.0, {});
  faults.server_bytes_per_second = 400.0;  // an update of 40 bytes takes 100 ms
  StepTimes times({.workers = 1, .buckets = two_layers({0, 1})}, faults, 1);
  const std::vector<std::int64_t> bytes{40, 10};
  // Bucket 0 is updated from 80 to 180 ms, bucket 1 from 120 to 145 ms. The second step begins at
  // 145 ms, needs bucket 0 at 165 ms, and waits for it until 180 ms: it is as if it had begun at
  // 160 ms. Its buckets are complete at 240 and 280 ms, and updated at 340 and 305 ms.
  EXPECT_EQ(times.step(1, bytes), milliseconds(180));
  EXPECT_EQ(times.step(2, bytes), milliseconds(340));
  EXPECT_EQ(times.accounts()[0].compute, milliseconds(240));
  EXPECT_EQ(times.accounts()[0].servers, milliseconds(25 + 15 + 25));
}

TEST(StepTimes, IncludeTheValuesForAllButTheFirstWorkerAfterAKill) {
  FaultInjection faults = constant(100.0, kSlow);
  faults.kills = {{.worker = 0, .at_seconds = 0.05, .restart_seconds = 0.1}};
  StepTimes times({.workers = 2, .buckets = {.bytes = {20}}}, faults, 1);
  // After the kill all workers continue at 150 ms, and worker 1 has received 20 bytes of values at
  // 171 ms. Then follow a step of 100 ms and the all-reduce, two messages of 11 ms.
  EXPECT_EQ(times.step(1, {}), milliseconds(171 + 122));
  EXPECT_EQ(times.accounts()[0].compute, milliseconds(150)) << "50 ms of it in vain";
}

TEST(StepTimes, IncludeAPauseOnceInTheStepThatBeginsAfterIt) {
  FaultInjection faults = constant(10.0, {});
  faults.pauses = {{.worker = 1, .at_seconds = 0.015, .for_seconds = 0.5}};
  StepTimes times({.workers = 2, .buckets = {.bytes = {4}}}, faults, 1);
  EXPECT_EQ(times.step(1, {}), milliseconds(10));
  EXPECT_EQ(times.step(2, {}), milliseconds(20));
  EXPECT_EQ(times.step(3, {}), milliseconds(530));
  EXPECT_EQ(times.step(4, {}), milliseconds(540));
  EXPECT_EQ(times.accounts()[1].compute, milliseconds(540));
}

}  // namespace
}  // namespace syncopate::bench
