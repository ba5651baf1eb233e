#include <gtest/gtest.h>

#include <ctime>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ps/coordinator/wire_conversion.h"
#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

void ask(JobCase& job, int index, int count) {
  wire::LeaseRequestT request;
  request.count = count;
  job.send(worker(index), request);
}

wire::DeclarationT steps(std::int64_t count, Consistency consistency = Consistency::kAsync) {
  wire::DeclarationT declaration = make_declaration();
  declaration.total_epochs = 0;
  declaration.total_steps = count;
  declaration.consistency = static_cast<std::uint8_t>(consistency);
  return declaration;
}

TEST(LeaseQueue, GrantsTheRequestedNumberOfBatchesWithTheStatusOfTheJob) {
  StartedJob job;
  job.train(1, 1);
  ask(job, 0, 3);
  const auto leases = job.take<wire::LeasesT>(worker(0));
  ASSERT_TRUE(leases);
  EXPECT_EQ(ranges_of(*leases), (std::vector<SampleRange>{{0, 2, 4}, {0, 4, 6}, {0, 6, 8}}));
  EXPECT_FALSE(leases->finished);
  EXPECT_EQ(leases->status->step, 1);
  EXPECT_EQ(leases->status->samples, 2);
  EXPECT_EQ(leases->status->loss, 0.5);
  EXPECT_EQ(leases->status->metric, 1);
  EXPECT_EQ(leases->status->live_workers, 2);
}

// Two workers hold batches of their rounds, and each waits for the batches of the other.
TEST(LeaseQueue, TellsWaitingWorkersToEndTheirRoundsWhenAllBatchesAreGranted) {
  wire::DeclarationT declaration = steps(3);
  declaration.outer = std::make_unique<wire::OuterStepT>();
  StartedJob job(declaration);
  wire::PushT round = make_push(1, job.lease(0));
  const SampleRange other = job.lease(1);
  round.batches.push_back(to_wire(job.lease(0)));
  ask(job, 0, 1);
  const auto told = job.take<wire::LeasesT>(worker(0));
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->all_granted && told->ranges.empty() && !told->finished);
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(1))) << "it has not asked";

  round.loss = 1.5;
  job.trained(0, 1, round);
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(0))) << "it was told";
  ask(job, 1, 1);
  const auto status = job.take<wire::LeasesT>(worker(1));
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->all_granted);
  EXPECT_EQ(status->status->step, 2);
  EXPECT_EQ(status->status->loss, 1.5);

  job.lose(worker(1));  // its batch goes to the worker that waits
  EXPECT_EQ(ranges_of(*job.take<wire::LeasesT>(worker(0))), std::vector<SampleRange>{other});
  ask(job, 0, 1);
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(0))->all_granted) << "a new request is told again";
}

TEST(LeaseQueue, CountsTheBatchesOfARoundThatNoOtherWorkerHolds) {
  wire::DeclarationT declaration = steps(4);
  declaration.outer = std::make_unique<wire::OuterStepT>();
  StartedJob job(declaration);
  wire::PushT round = make_push(1, job.lease(0));
  round.batches.push_back(to_wire(job.lease(1)));
  round.loss = 1.0;
  job.trained(0, 1, round);
  EXPECT_EQ(job.coordinator->status().step, 1);
  EXPECT_EQ(job.coordinator->status().loss, 0.5);
}

TEST(LeaseQueue, CountsTheBadSamplesOfEachEpochOverAllWorkers) {
  StartedJob job;
  for (const int index : {0, 1}) {
    wire::PushT push = make_push(1, job.lease(index));
    push.num_bad = 2 + index;
    job.trained(index, 1, push);
  }
  ask(job, 0, 1);
  EXPECT_EQ(job.take<wire::LeasesT>(worker(0))->status->num_bad_in_epoch, 5);
}

TEST(LeaseQueue, CountsTheBadSamplesOfARoundInTheEpochsOfItsBatches) {
  wire::DeclarationT declaration = steps(4);
  declaration.outer = std::make_unique<wire::OuterStepT>();
  StartedJob job(declaration);
  wire::PushT round = make_push(1, job.lease(0));
  SampleRange next = job.lease(0);
  next.epoch = 1;
  round.batches.push_back(to_wire(next));
  round.num_bad = 3;
  round.bad_of_batches = {2, 1};
  job.trained(0, 1, round);
  ask(job, 1, 1);
  EXPECT_EQ(job.take<wire::LeasesT>(worker(1))->status->num_bad_in_epoch, 2);
}

TEST(LeaseQueue, CountsBatchesThatALostWorkerHadPushedInPart) {
  StartedJob job(steps(6), 2);
  const auto departed = [&](int from, int index, std::uint32_t incarnation,
                            std::uint64_t sequence) {
    wire::WorkerLeftT left;
    left.worker = index;
    left.incarnation = incarnation;
    left.sequence = sequence;
    job.send(server(from), left);
  };
  job.train(1, 1);
  job.lease(1);
  job.lose(worker(1));
  departed(0, 1, 1, 1);
  departed(1, 1, 1, 2);  // it died when it had pushed to server 1 only
  departed(0, 1, 1, 2);
  job.send_hello(job.worker_hello(1));
  job.send(worker(1), wire::ReadyT{});
  job.lose(worker(1));
  departed(1, 1, 2, 0);
  departed(1, 1, 1, 2);  // of the first incarnation
  for (std::uint64_t step = 1; step <= 5; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 5}});
  EXPECT_EQ(job.take<wire::AssignmentT>(worker(0))->repeated_batches, 1);
}

TEST(LeaseQueue, CountsEarlierStepsTowardsTheTotal) {
  JobCase job(steps(5));
  wire::InitialisedT initialised;
  initialised.step = 3;
  initialised.offset = 6;
  initialised.untrained.emplace_back(0, 0, 2);
  job.start(initialised);
  ask(job, 0, 9);
  EXPECT_EQ(ranges_of(*job.take<wire::LeasesT>(worker(0))),
            (std::vector<SampleRange>{{0, 0, 2}, {0, 6, 8}}));
}

TEST(LeaseQueue, KeepsARequestUntilABatchIsGivenBack) {
  StartedJob job(steps(1));
  const SampleRange only = job.lease(0);
  ask(job, 1, 1);
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(1)));
  job.lose(worker(0));
  EXPECT_EQ(ranges_of(*job.take<wire::LeasesT>(worker(1))), std::vector{only});
}

TEST(LeaseQueue, GrantsTheBatchOfADroppedPushAgain) {
  StartedJob job(steps(1));
  const SampleRange only = job.lease(0);
  job.dropped(0, 1, only);
  EXPECT_EQ(job.lease(1), only);
}

TEST(LeaseQueue, EndsAllRequestsWhenAllBatchesAreTrained) {
  StartedJob job(steps(1));
  ask(job, 1, 1);
  const auto leases = job.take<wire::LeasesT>(worker(1));
  ask(job, 0, 2);
  job.trained(1, 1, ranges_of(*leases)[0]);
  const auto finished = job.take<wire::LeasesT>(worker(0));
  ASSERT_TRUE(finished);
  EXPECT_TRUE(finished->finished);
  EXPECT_TRUE(finished->ranges.empty());
  ask(job, 1, 1);
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(1))->finished);
}

TEST(LeaseQueue, EndsRequestsAtOnceIfNothingIsLeft) {
  JobCase job(steps(3));
  wire::InitialisedT initialised;
  initialised.step = 7;
  job.start(initialised);
  ask(job, 0, 1);
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(0))->finished);
}

TEST(LeaseQueue, GrantsEarlyRequestsAtTheStart) {
  JobCase job;
  job.register_all();
  ask(job, 1, 1);
  job.send(worker(1), wire::ReadyT{});
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(1)));
  job.send(worker(0), wire::InitialisedT{});
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(1)));
}

TEST(LeaseQueue, IgnoresPushesOfALostIncarnation) {
  StartedJob job(steps(1));
  const SampleRange only = job.lease(1);
  job.lose(worker(1));
  job.trained(1, 1, only);
  EXPECT_EQ(job.coordinator->status().step, 0);
  EXPECT_EQ(job.lease(0), only);
}

TEST(LeaseQueue, ReportsIdleWorkersToServersThatWouldWaitForThem) {
  StartedJob job(steps(2, Consistency::kSsp));
  job.train(1, 1);
  const SampleRange last = job.lease(0);
  EXPECT_FALSE(job.take<wire::RestingT>(server(0)));
  ask(job, 1, 1);
  const auto resting = job.take<wire::RestingT>(server(0));
  ASSERT_TRUE(resting);
  EXPECT_EQ(resting->worker, 1);
  EXPECT_EQ(resting->incarnation, 1U);
  EXPECT_EQ(resting->sequence, 1U);
  EXPECT_FALSE(job.take<wire::RestingT>(server(0)));
  // The idle worker is granted the batch of the dropped push, and is idle again later.
  job.dropped(0, 1, last);
  ask(job, 0, 1);
  const auto leases = job.take<wire::LeasesT>(worker(1));
  ASSERT_TRUE(leases);
  EXPECT_EQ(job.take<wire::RestingT>(server(0))->worker, 0);
  job.dropped(1, 2, ranges_of(*leases)[0]);
  ask(job, 1, 1);
  EXPECT_EQ(job.take<wire::RestingT>(server(0))->sequence, 2U);
}

TEST(LeaseQueue, ReportsIdleWorkersAgainToAServerThatReconnects) {
  StartedJob job(steps(2, Consistency::kSsp), 2);
  job.train(1, 1);
  job.lease(0);
  ask(job, 1, 1);
  EXPECT_TRUE(job.take<wire::RestingT>(server(1)));
  EXPECT_EQ(job.send_hello(job.server_hello(1, 1)), "");
  const auto resting = job.take<wire::RestingT>(server(1));
  ASSERT_TRUE(resting);
  EXPECT_EQ(resting->worker, 1);
  EXPECT_EQ(resting->sequence, 1U);
}

TEST(LeaseQueue, KeepsTheBatchesOfAWorkerThatReconnects) {
  StartedJob job(steps(2));
  const SampleRange has = job.lease(1);
  const SampleRange lost = job.lease(1);
  wire::HelloT hello = job.worker_hello(1, 1);
  hello.held.emplace_back(has.epoch, has.begin, has.end);
  EXPECT_EQ(job.send_hello(hello), "");
  EXPECT_EQ(job.lease(0), lost);
  ask(job, 0, 1);
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(0)));
  job.trained(1, 1, has);
  EXPECT_EQ(job.coordinator->status().step, 1);
}

TEST(LeaseQueue, LimitsTheBatchesOfOneRequest) {
  StartedJob job(steps(5000));
  ask(job, 0, std::numeric_limits<int>::max());
  EXPECT_EQ(job.take<wire::LeasesT>(worker(0))->ranges.size(), 1024U);
}

TEST(LeaseQueue, FailsForANumberOfStepsThatOverflows) {
  JobCase job(steps(5));
  wire::InitialisedT initialised;
  initialised.step = std::numeric_limits<std::int64_t>::min();
  job.register_all();
  job.send(worker(0), initialised);
  ASSERT_TRUE(job.coordinator->failure());
  EXPECT_TRUE(contains(*job.coordinator->failure(), "is out of range"));
}

TEST(LeaseQueue, DoesNotReportIdleWorkersUnderAsync) {
  StartedJob job(steps(1));
  job.lease(0);
  ask(job, 1, 1);
  EXPECT_FALSE(job.take<wire::RestingT>(server(0)));
}

TEST(LeaseQueue, ReportsWorkersOfAStoppingJobAsIdle) {
  StartedJob job(steps(9, Consistency::kSsp));
  job.lease(0);
  job.send(worker(1), wire::StopRequestT{});
  ask(job, 1, 1);
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(1))->finished);
  EXPECT_EQ(job.take<wire::RestingT>(server(0))->worker, 1);
}

// Returns the CPU time of one lease and one trained batch with this number of workers, in seconds:
// the mean of all but the last batches, and the mean of the last batch of each worker.
std::pair<double, double> cost_of_batches(int workers, Consistency consistency) {
  const int total = 10 * workers;
  wire::DeclarationT declaration = steps(total, consistency);
  declaration.workers = workers;
  declaration.dataset_size = 1 << 20;
  declaration.batch_size = 1;
  StartedJob job(declaration);
  const auto request = [&](int w) {
    wire::LeaseRequestT one;
    one.count = 1;
    job.coordinator->on_message(worker(w), wire::make_message(one));
    std::optional<SampleRange> granted;
    for (const Outgoing& outgoing : job.coordinator->take_outgoing()) {
      const auto* const leases = outgoing.message.body.AsLeases();
      if (leases != nullptr && !leases->ranges.empty()) granted = ranges_of(*leases).front();
    }
    return granted;
  };
  std::vector<std::optional<SampleRange>> held(static_cast<std::size_t>(workers));
  for (int w = 0; w < workers; ++w) held[static_cast<std::size_t>(w)] = request(w);
  const auto cpu = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const double begun = cpu();
  double last_begun = begun;
  for (int i = 0; i < total; ++i) {
    if (i == total - workers) last_begun = cpu();
    const int w = i % workers;
    std::optional<SampleRange>& batch = held[static_cast<std::size_t>(w)];
    const auto sequence = static_cast<std::uint64_t>(i / workers + 1);
    job.coordinator->on_push_applied(w, 1, make_push(sequence, batch.value()), 2);
    job.coordinator->take_outgoing();
    batch = request(w);
  }
  const double ended = cpu();
  EXPECT_EQ(job.coordinator->status().step, total);
  return {(last_begun - begun) / (total - workers), (ended - last_begun) / workers};
}

// A batch costs 0.4 us on one machine, and each of the last ones 5 us under ssp.
TEST(LeaseQueue, CostsLittlePerBatchWithAThousandWorkers) {
  for (const Consistency consistency : {Consistency::kAsync, Consistency::kSsp}) {
    const auto [usual, last] = cost_of_batches(1000, consistency);
    std::cout << "1,000 workers, " << (consistency == Consistency::kSsp ? "ssp" : "async") << ": "
              << 1e6 * usual << " us per batch, " << 1e6 * last << " us for each of the last\n";
    EXPECT_LT(usual, 30e-6);
    EXPECT_LT(last, 30e-6);
  }
}

}  // namespace
}  // namespace syncopate::ps
