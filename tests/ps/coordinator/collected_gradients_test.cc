// Tests what a checkpoint says of gradients that the servers have collected for an update that is
// not made yet (--staleness-rule rennala).
#include <gtest/gtest.h>

#include <vector>

#include "ps/coordinator/wire_conversion.h"
#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

// Returns a job with batches 0:2, 2:4 and so on; an update has `size` of them. A checkpoint follows
// every epoch of six batches.
wire::DeclarationT collecting(std::int64_t size) {
  wire::DeclarationT declaration = with_checkpoints(0);
  declaration.staleness_rule = static_cast<std::uint8_t>(StalenessRule::kRennala);
  declaration.staleness_number = size;
  return declaration;
}

std::vector<SampleRange> untrained_of(const wire::AssignmentT& assignment) {
  return from_wire(assignment.untrained);
}

TEST(ACheckpointWithinACollection, LeavesItsBatchesToALaterRun) {
  StartedJob job(collecting(4));
  for (std::uint64_t push = 1; push <= 6; ++push) job.train(0, push);
  job.freeze_and_copy({{0, 1, 6}});
  const auto checkpoint = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->step, 1);
  EXPECT_EQ(checkpoint->samples, 8);
  EXPECT_EQ(checkpoint->epoch, 0);
  EXPECT_EQ(checkpoint->offset, 8) << "batches 5 and 6 are collected";
  EXPECT_EQ(job.coordinator->status().step, 1);
}

TEST(ACheckpointWithinACollection, NamesTheBatchesThatWereCollectedLast) {
  StartedJob job(collecting(4));
  const SampleRange slow = job.lease(1);
  for (std::uint64_t push = 1; push <= 4; ++push) job.train(0, push);
  job.trained(1, 1, slow);
  job.train(0, 5);
  job.freeze_and_copy({{0, 1, 5}, {1, 1, 1}});
  const auto checkpoint = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(untrained_of(*checkpoint), (std::vector<SampleRange>{slow}));
  EXPECT_EQ(checkpoint->offset, 10) << "the other collected batch is the last one";
}

TEST(ACheckpointWithinACollection, DoesNotContainLaterPushes) {
  StartedJob job(collecting(4));
  for (std::uint64_t push = 1; push <= 5; ++push) job.train(0, push);
  const SampleRange sixth = job.lease(0);
  job.trained(0, 6, sixth);  // ends the epoch, so a checkpoint is due
  job.freeze_all({{0, 1, 6}});
  for (std::uint64_t push = 7; push <= 9; ++push) job.train(0, push);  // completes the collection
  job.copy_all();
  const auto checkpoint = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->step, 1);
  EXPECT_EQ(checkpoint->epoch, 0);
  EXPECT_EQ(checkpoint->offset, 8);
  EXPECT_EQ(job.coordinator->status().step, 2);
}

TEST(ARestartedServer0, KnowsTheBatchesThatItsSnapshotHasCollected) {
  StartedJob before(collecting(4), 1, true);
  for (std::uint64_t push = 1; push <= 5; ++push) before.train(0, push);
  const std::vector<std::byte> saved = before.save({{0, 1, 5}});

  JobCase job(collecting(4), 1, true);
  job.coordinator->restore(saved);
  job.restart_server(0, {1});
  job.roll_back(0);
  EXPECT_EQ(job.send_hello(job.worker_hello(0, 1)), "");
  job.coordinator->on_reconnect_timeout();
  EXPECT_EQ(job.coordinator->status().step, 1);
  job.train(0, 6);
  job.freeze_and_copy({{0, 1, 6}});
  const auto checkpoint = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->step, 1);
  EXPECT_EQ(checkpoint->samples, 8);
  EXPECT_EQ(checkpoint->offset, 8);
}

TEST(AJobThatCollects, EndsWithItsLastCompleteCollection) {
  StartedJob job(collecting(5));  // 12 batches
  for (std::uint64_t push = 1; push <= 10; ++push) job.train(0, push);
  wire::LeaseRequestT request;
  request.count = 1;
  job.send(worker(0), request);
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(0))->finished);
  EXPECT_EQ(job.coordinator->status().step, 2);
  EXPECT_DOUBLE_EQ(job.coordinator->status().loss, 10 * 0.5 / 5) << "the mean loss of two steps";
}

TEST(AJobThatCollects, IsRefusedIfItWouldMakeNoUpdate) {
  JobCase job(collecting(13));
  job.register_all();
  job.send(worker(0), wire::InitialisedT{});
  ASSERT_TRUE(job.coordinator->failure());
  EXPECT_TRUE(contains(*job.coordinator->failure(),
                       "rennala:13: the whole run has 12 batches, so no update would be made"));
}

}  // namespace
}  // namespace syncopate::ps
