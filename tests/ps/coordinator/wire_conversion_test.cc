#include "ps/coordinator/wire_conversion.h"

#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

TEST(AStalenessHistogramInAMessage, IsRestoredWithoutTheZerosInFront) {
  StalenessHistogram histogram;
  for (const std::uint64_t staleness : {70, 75, 900}) histogram.add(staleness);
  const std::unique_ptr<wire::StalenessT> sent = to_wire(3, histogram);
  EXPECT_EQ(sent->worker, 3);
  EXPECT_EQ(sent->first, 65);
  const StalenessHistogram received = from_wire(*sent);
  EXPECT_EQ(received.counts(), histogram.counts());
  EXPECT_EQ(received.count(), 3);
  EXPECT_EQ(received.sum(), 1045.0);
  EXPECT_EQ(received.max(), 900U);
}

TEST(AStalenessHistogramInAMessage, TakesBoundedMemoryWhateverTheMessageSays) {
  wire::StalenessT sent;
  sent.counts.assign(100'000, 1);
  for (const int first : {-5, 0, 479, 2'000'000'000}) {
    sent.first = first;
    EXPECT_EQ(from_wire(sent).counts().size(), StalenessHistogram::kMostRanges);
  }
}

// With a count for each staleness up to 1,023, this message had 8 MB.
TEST(ACompleteSnapshotOfThousandWorkers, IsReportedInASmallMessage) {
  wire::SnapshotDoneT done;
  for (WorkerId worker = 0; worker < 1000; ++worker) {
    StalenessHistogram histogram;
    for (std::uint64_t staleness = 700; staleness < 1300; ++staleness) histogram.add(staleness);
    done.staleness.push_back(to_wire(worker, histogram));
  }
  EXPECT_LT(wire::encode(wire::make_message(std::move(done))).size(), std::size_t{300'000});
}

}  // namespace
}  // namespace syncopate::ps
