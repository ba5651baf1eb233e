#include "ps/coordinator/ledger.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

// The ledger has ten samples in batches of three: an epoch begins with [0, 3), [3, 6), [6, 9).
Ledger make_ledger(std::int64_t total_batches, DataPosition start = {}) {
  return Ledger({.dataset_size = 10,
                 .batch_size = 3,
                 .total_batches = total_batches,
                 .start = std::move(start)});
}

TEST(Ledger, GrantsTheOrderOfAnEpochWithoutItsRemainder) {
  Ledger ledger = make_ledger(4);
  EXPECT_EQ(ledger.grant(0), (SampleRange{0, 0, 3}));
  EXPECT_EQ(ledger.grant(1), (SampleRange{0, 3, 6}));
  EXPECT_EQ(ledger.grant(0), (SampleRange{0, 6, 9}));
  EXPECT_EQ(ledger.grant(0), (SampleRange{1, 0, 3}));
  EXPECT_EQ(ledger.grant(0), std::nullopt);
  EXPECT_TRUE(ledger.all_handed_out());
  EXPECT_FALSE(ledger.all_trained());
}

TEST(Ledger, GrantsUntrainedRangesFirstInBatches) {
  Ledger ledger = make_ledger(4, {1, 6, {{0, 0, 4}, {1, 3, 6}}});
  EXPECT_EQ(ledger.grant(0), (SampleRange{0, 0, 3}));
  EXPECT_EQ(ledger.grant(0), (SampleRange{0, 3, 4}));
  EXPECT_EQ(ledger.grant(0), (SampleRange{1, 3, 6}));
  EXPECT_EQ(ledger.grant(0), (SampleRange{1, 6, 9}));
  EXPECT_EQ(ledger.grant(0), std::nullopt);
}

TEST(Ledger, ContinuesWithTheNextEpochFromTheEndOfOne) {
  EXPECT_EQ(make_ledger(1, {4, 9, {}}).grant(0), (SampleRange{5, 0, 3}));
}

TEST(Ledger, CountsABatchForTheWorkerThatHoldsIt) {
  Ledger ledger = make_ledger(2);
  const SampleRange first = *ledger.grant(0);
  const SampleRange second = *ledger.grant(1);
  EXPECT_FALSE(ledger.mark_trained(1, 1, first));
  EXPECT_TRUE(ledger.mark_trained(0, 1, first));
  EXPECT_FALSE(ledger.mark_trained(0, 2, first));
  EXPECT_TRUE(ledger.mark_trained(1, 1, second));
  EXPECT_TRUE(ledger.all_trained());
  EXPECT_EQ(ledger.samples_trained(), 6);
}

TEST(Ledger, GrantsBatchesOfALostWorkerFirst) {
  Ledger ledger = make_ledger(4);
  const SampleRange first = *ledger.grant(0);
  const SampleRange second = *ledger.grant(0);
  ledger.give_back(0);
  EXPECT_FALSE(ledger.is_any_held());
  EXPECT_EQ(ledger.grant(1), first);
  EXPECT_EQ(ledger.grant(1), second);
  EXPECT_EQ(ledger.grant(1), (SampleRange{0, 6, 9}));
}

TEST(Ledger, GrantsTheBatchesThatAWorkerHoldsAfterARestore) {
  Ledger ledger = make_ledger(4);
  const std::vector<SampleRange> held = {{0, 6, 9}, {0, 3, 6}};
  ledger.adopt(1, held);
  EXPECT_EQ(ledger.grant(0), (SampleRange{0, 0, 3}));
  ledger.adopt(0, held);  // worker 1 holds these
  EXPECT_TRUE(ledger.mark_trained(1, 1, held[0]));
  EXPECT_TRUE(ledger.mark_trained(1, 2, held[1]));
  ledger.adopt(1, held);  // these are trained
  EXPECT_FALSE(ledger.holds_any(1));
  EXPECT_TRUE(ledger.grant(0));
  EXPECT_TRUE(ledger.all_handed_out());
}

TEST(Ledger, DoesNotGrantABatchThatIsNotPartOfTheJob) {
  Ledger ledger = make_ledger(2);
  const std::vector<SampleRange> others = {
      {0, 1, 4}, {0, 0, 2}, {0, 6, 9}, {1 << 30, 0, 3}, {-1, 0, 3}};
  ledger.adopt(0, others);
  EXPECT_FALSE(ledger.is_any_held());
  EXPECT_EQ(ledger.grant(0), (SampleRange{0, 0, 3}));
}

TEST(Ledger, GrantsTheBatchOfADroppedPushAgain) {
  Ledger ledger = make_ledger(1);
  const SampleRange only = *ledger.grant(0);
  EXPECT_TRUE(ledger.all_handed_out());
  ledger.give_back(0, only);
  EXPECT_FALSE(ledger.all_handed_out());
  EXPECT_EQ(ledger.grant(1), only);
  ledger.give_back(0, only);  // worker 0 no longer holds the batch
  EXPECT_TRUE(ledger.all_handed_out());
}

TEST(Ledger, CountsABatchThatIsTrainedAfterItWasGivenBack) {
  Ledger ledger = make_ledger(1);
  const SampleRange only = *ledger.grant(0);
  ledger.give_back(0);
  EXPECT_TRUE(ledger.mark_trained(0, 1, only));
  EXPECT_TRUE(ledger.all_trained());
  EXPECT_EQ(ledger.grant(1), std::nullopt);
}

TEST(Ledger, CountsPushesAfterASnapshotAsUntrained) {
  Ledger ledger = make_ledger(6);
  const SampleRange a = *ledger.grant(0);
  const SampleRange b = *ledger.grant(1);
  const SampleRange c = *ledger.grant(0);
  ledger.mark_trained(0, 1, a);
  ledger.mark_trained(1, 1, b);
  ledger.mark_trained(0, 2, c);
  const Ledger::AsOf as_of = ledger.as_of({{0, 1}, {1, 0}});
  EXPECT_EQ(as_of.batches_trained, 1);
  EXPECT_EQ(as_of.samples_trained, 3);
  EXPECT_EQ(as_of.position, (DataPosition{0, 3, {}}));  // batches b and c follow sample 3
  EXPECT_EQ(ledger.as_of({{1, 0}}).position, (DataPosition{1, 0, {b}}));
  EXPECT_EQ(ledger.as_of({}).position, (DataPosition{1, 0, {}}));
}

TEST(Ledger, ListsHeldBatchesAsUntrained) {
  Ledger ledger = make_ledger(6);
  const SampleRange held = *ledger.grant(0);
  const SampleRange trained = *ledger.grant(1);
  ledger.mark_trained(1, 1, trained);
  EXPECT_EQ(ledger.as_of({}).position, (DataPosition{0, 6, {held}}));
}

TEST(Ledger, DropsPushesBeforeASnapshot) {
  Ledger ledger = make_ledger(6);
  ledger.mark_trained(0, 5, *ledger.grant(0));
  ledger.forget({{0, 5}});
  EXPECT_EQ(ledger.as_of({{0, 0}}).batches_trained, 1);
}

TEST(Ledger, ContinuesFromASnapshotWithItsUntrainedBatches) {
  Ledger ledger = make_ledger(7);
  std::vector<SampleRange> granted;
  granted.reserve(5);
  for (int i = 0; i < 5; ++i) granted.push_back(*ledger.grant(i % 2));
  ledger.mark_trained(1, 1, granted[1]);
  ledger.mark_trained(0, 1, granted[2]);
  const Ledger::AsOf as_of = ledger.as_of({{0, 0}});
  EXPECT_EQ(as_of.batches_trained, 1);
  Ledger resumed = make_ledger(7 - as_of.batches_trained, as_of.position);
  std::vector<SampleRange> rest;
  while (const auto batch = resumed.grant(0)) rest.push_back(*batch);
  EXPECT_EQ(rest, (std::vector<SampleRange>{
                      {0, 0, 3}, {0, 6, 9}, {1, 0, 3}, {1, 3, 6}, {1, 6, 9}, {2, 0, 3}}));
}

TEST(Ledger, CountsBatchesBeforeAndAfterAPosition) {
  const LedgerOptions options{
      .dataset_size = 10, .batch_size = 3, .start = {2, 3, {{1, 6, 9}, {1, 0, 4}}}};
  EXPECT_EQ(batches_before(options), 2 * 3 + 1 - 3);
  EXPECT_EQ(batches_left(options, 4), 3 + 2 + 3);
  EXPECT_EQ(batches_left(options, 2), 3);
}

TEST(Ledger, RefusesAPositionOutsideTheData) {
  EXPECT_THROW(make_ledger(1, {0, 11, {}}), UsageError);
  EXPECT_THROW(make_ledger(1, {1, 0, {{0, 8, 11}}}), UsageError);
  EXPECT_THROW(Ledger({.dataset_size = 2, .batch_size = 3, .total_batches = 1, .start = {}}),
               UsageError);
}

}  // namespace
}  // namespace syncopate::ps
