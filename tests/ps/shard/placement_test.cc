// Tests the placement of networks' variables on shards.
#include "ps/shard/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

using Kind = PartitionRule::Kind;

constexpr std::int64_t kRow = 4;  // bytes of a row with one f32

std::int64_t parts_of_six(Kind kind, std::int64_t value, std::int64_t most_parts) {
  return count_parts({kind, value}, 6, kRow, most_parts);
}

ArenaLayout network_layout(std::string_view name) {
  NetworkInput input{.sample_shape = {32, 32, 3}, .classes = 10, .input = {}};
  const auto row = std::ranges::find(networks(), name, &NetworkRow::name);
  if (row->labels_pixels) input.target_shape = {32, 32};
  return build_network(name, input).parameter_layout();
}

ArenaLayout one_huge_variable() {
  return ArenaLayout(
      {{.name = "weight", .shape = {1000, 1000}}, {.name = "bias", .shape = {1000}}});
}

ArenaLayout two_small_variables() {
  return ArenaLayout({{.name = "weight", .shape = {3, 2}}, {.name = "bias", .shape = {3}}});
}

Placement place(const ArenaLayout& layout, int servers, PartitionRule rule = {},
                std::int64_t message_bytes = std::int64_t{1} << 20) {
  return place_variables(layout,
                         {.servers = servers, .partition = rule, .message_bytes = message_bytes});
}

std::int64_t size_bytes(Bucket bucket) { return 4 * (bucket.end - bucket.begin); }

// Returns whether the buckets cover the arena from the last element to the first, without a gap.
void expect_to_cover(const Placement& placement, const ArenaLayout& layout) {
  ASSERT_EQ(placement.buckets.size(), placement.owner.size());
  std::int64_t end = layout.total();
  for (const Bucket bucket : placement.buckets) {
    EXPECT_EQ(bucket.end, end);
    EXPECT_LT(bucket.begin, bucket.end);
    end = bucket.begin;
  }
  EXPECT_EQ(end, 0);
}

// Returns whether every bucket begins with a variable or with one of a variable's rows.
void expect_rows_whole(const Placement& placement, const ArenaLayout& layout) {
  for (const Bucket bucket : placement.buckets) {
    std::size_t i = layout.entries().size() - 1;
    while (layout.offset(i) > bucket.begin) --i;
    const std::int64_t row = layout.size(i) / layout.entries()[i].shape.front();
    EXPECT_EQ((bucket.begin - layout.offset(i)) % row, 0) << bucket.begin;
    EXPECT_LT(bucket.begin, layout.offset(i) + layout.size(i)) << bucket.begin;
  }
}

// Source of the expected numbers: TensorFlow's sharded_variable_test.py and its documentation.
TEST(CountParts, AgreesWithTensorFlowsPartitioners) {
  EXPECT_EQ(parts_of_six(Kind::kFixed, 2, 0), 2);
  EXPECT_EQ(parts_of_six(Kind::kFixed, 10, 0), 6);
  EXPECT_EQ(parts_of_six(Kind::kMinSize, 4, 2), 2);
  EXPECT_EQ(parts_of_six(Kind::kMinSize, 4, 10), 6);
  EXPECT_EQ(parts_of_six(Kind::kMaxSize, 4, 0), 6);
  EXPECT_EQ(parts_of_six(Kind::kMaxSize, 4, 2), 2);
  EXPECT_EQ(parts_of_six(Kind::kMaxSize, 1024, 0), 1);
  EXPECT_EQ(count_parts({Kind::kMinSize, 256 << 10}, 1024, 4096, 16), 16);
  EXPECT_EQ(count_parts({Kind::kMinSize, 256 << 10}, 1024, 4096, 100), 16);
  EXPECT_EQ(count_parts({Kind::kMinSize, 256 << 10}, 1024, 4096, 2), 2);
}

TEST(CountParts, OfMinSizeIsRoundedUp) {
  // With a minimum size of 256 KiB, a variable of 257 KiB is divided into two parts of 128.5 KiB.
  EXPECT_EQ(count_parts({Kind::kMinSize, 256 << 10}, 257, 1024, 0), 2);
  EXPECT_EQ(count_parts({Kind::kMinSize, 256 << 10}, 256, 1024, 0), 1);
}

TEST(CountParts, AllowsARowLargerThanTheMostBytes) {
  EXPECT_EQ(count_parts({Kind::kMaxSize, 10}, 5, 100, 0), 5);
  EXPECT_EQ(count_parts({Kind::kMaxSize, 250}, 5, 100, 0), 3);
}

TEST(FirstRow, GivesTheFirstPartsOneRowMore) {
  const auto rows_of = [](std::int64_t rows, std::int64_t parts) {
    std::vector<std::int64_t> counts;
    for (std::int64_t p = 0; p < parts; ++p) {
      counts.push_back(first_row(rows, parts, p + 1) - first_row(rows, parts, p));
    }
    return counts;
  };
  EXPECT_EQ(rows_of(13, 5), (std::vector<std::int64_t>{3, 3, 3, 2, 2}));
  EXPECT_EQ(rows_of(10, 4), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(first_row(10, 4, 0), 0);
  EXPECT_EQ(first_row(10, 4, 1), 3);
  EXPECT_EQ(first_row(10, 4, 2), 6);
  EXPECT_EQ(first_row(10, 4, 3), 8);
  EXPECT_EQ(first_row(10, 4, 4), 10);
}

TEST(ParsePartition, AcceptsFourRules) {
  EXPECT_EQ(parse_partition("auto", "--partition").kind, Kind::kAuto);
  const PartitionRule fixed = parse_partition("fixed:4", "--partition");
  EXPECT_EQ(fixed.kind, Kind::kFixed);
  EXPECT_EQ(fixed.value, 4);
  const PartitionRule min_size = parse_partition("min-size:262144", "--partition");
  EXPECT_EQ(min_size.kind, Kind::kMinSize);
  EXPECT_EQ(min_size.value, 262144);
  EXPECT_EQ(parse_partition("max-size:4194304", "--partition").kind, Kind::kMaxSize);
}

TEST(ParsePartition, ReadsTheTextOfEachRule) {
  for (const std::string text : {"auto", "fixed:4", "min-size:262144", "max-size:4194304"}) {
    EXPECT_EQ(to_text(parse_partition(text, "--partition")), text);
  }
}

TEST(ParsePartition, NamesTheFlagAndTheExpectedFormsForOtherText) {
  for (const std::string text : {"", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:2.5",
                                 "max-size:1k", "round-robin:2", "auto:1"}) {
    const std::string error =
        message_of<UsageError>([&] { (void)parse_partition(text, "--partition"); });
    EXPECT_TRUE(error.starts_with("--partition " + text)) << error;
    EXPECT_TRUE(contains(error, "expected"));
  }
}

TEST(Placement, CoversTheArenaOnceWithWholeRows) {
  for (const NetworkRow& network : networks()) {
    const ArenaLayout layout = network_layout(network.name);
    for (const PartitionRule rule :
         {PartitionRule{}, PartitionRule{Kind::kFixed, 5}, PartitionRule{Kind::kMinSize, 10000},
          PartitionRule{Kind::kMaxSize, 20000}}) {
      for (const int servers : {1, 2, 3, 7}) {
        for (const std::int64_t message : {100, 65536, 1 << 20}) {
          const Placement placement = place(layout, servers, rule, message);
          SCOPED_TRACE(std::string(network.name) + " on " + std::to_string(servers));
          expect_to_cover(placement, layout);
          expect_rows_whole(placement, layout);
          for (int server = 0; server < servers; ++server) {
            EXPECT_NE(std::ranges::find(placement.owner, server), placement.owner.end()) << server;
          }
        }
      }
    }
  }
}

TEST(Placement, BalancesShardsByBytes) {
  std::vector<ArenaLayout> layouts = {one_huge_variable()};
  for (const NetworkRow& network : networks()) layouts.push_back(network_layout(network.name));
  for (const ArenaLayout& layout : layouts) {
    for (int servers = 1; servers <= 8; ++servers) {
      EXPECT_LE(imbalance(place(layout, servers), servers), 1.1)
          << layout.entries().front().name << " on " << servers;
    }
  }
}

TEST(Placement, HasAboutFourMessagesPerShardOrAsManyAsTheirSizeRequires) {
  for (const NetworkRow& network : networks()) {
    const ArenaLayout layout = network_layout(network.name);
    const std::int64_t message = std::int64_t{1} << 20;
    const std::int64_t full = size_bytes({0, layout.total()}) / message;
    for (const int servers : {1, 2, 3, 4}) {
      const auto most = static_cast<std::size_t>(std::max<std::int64_t>(8 * servers, 2 * full));
      EXPECT_LE(place(layout, servers, {}, message).buckets.size(), most)
          << network.name << " on " << servers;
    }
  }
}

TEST(Placement, OfASmallNetworkOnOneServerLeavesVariablesWhole) {
  const ArenaLayout layout = network_layout("mlp");
  const Placement placement = place(layout, 1);
  EXPECT_LE(placement.buckets.size(), 4U);
  for (const Bucket bucket : placement.buckets) {
    bool begins_a_variable = false;
    for (std::size_t i = 0; i < layout.entries().size(); ++i) {
      begins_a_variable |= layout.offset(i) == bucket.begin;
    }
    EXPECT_TRUE(begins_a_variable) << bucket.begin;
  }
}

TEST(Placement, LimitsTheSizeOfMessages) {
  for (const int servers : {1, 3}) {
    for (const Bucket bucket : place(one_huge_variable(), servers, {}, 100000).buckets) {
      EXPECT_LE(size_bytes(bucket), 100000);
    }
  }
}

TEST(Placement, SendsAPartThatIsLargerThanAMessageAlone) {
  // The weight has three rows of 400,000 bytes; the bias has 1,024 bytes.
  const ArenaLayout layout(
      {{.name = "weight", .shape = {3, 100000}}, {.name = "bias", .shape = {256}}});
  const Placement placement = place(layout, 1, {}, 100000);
  EXPECT_EQ(
      placement.buckets,
      (std::vector<Bucket>{{300032, 300288}, {200000, 300032}, {100000, 200000}, {0, 100000}}));
}

TEST(Placement, HasTheLargestRangeOnTheFirstShardIfThereIsNoChoice) {
  // The padding from 3 to 64 elements belongs to the bucket of the variable before it.
  const Placement placement = place(two_small_variables(), 2);
  EXPECT_EQ(placement.buckets.size(), 2U);
  EXPECT_EQ(placement.owner, (std::vector<int>{0, 1}));
  EXPECT_EQ(imbalance(placement, 2), 1.0);
}

TEST(Placement, OfMinSizeMakesNoMorePartsThanServers) {
  const ArenaLayout layout({{.name = "weight", .shape = {8, 64}}});
  EXPECT_EQ(place(layout, 2, {Kind::kMinSize, 4}).buckets,
            (std::vector<Bucket>{{256, 512}, {0, 256}}));
}

TEST(Placement, AssignsTheLargestRangesFirst) {
  // Variables of 5, 4, 3, 3 and 3 hundred thousand elements give shards of 10 and 8; smallest first
  // would give 11 and 7.
  const ArenaLayout layout({{.name = "a", .shape = {300000}},
                            {.name = "b", .shape = {400000}},
                            {.name = "c", .shape = {300000}},
                            {.name = "d", .shape = {500000}},
                            {.name = "e", .shape = {300000}}});
  EXPECT_NEAR(imbalance(place(layout, 2, {Kind::kFixed, 1}), 2), 10.0 / 9.0, 0.001);
}

// An element has four bytes, so a bucket limit of as many bytes as the network has elements is a
// quarter of the network.
TEST(Placement, JoinsNeighboursOfOneShardUpToAQuarterOfTheNetwork) {
  const ArenaLayout layout = network_layout("resnet56");
  const Placement placement = place(layout, 2);
  EXPECT_LT(placement.buckets.size(), 8U);
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    EXPECT_LE(size_bytes(placement.buckets[b]), layout.total());
    if (b == 0 || placement.owner[b] != placement.owner[b - 1]) continue;
    EXPECT_GT(size_bytes(placement.buckets[b]) + size_bytes(placement.buckets[b - 1]),
              layout.total());
  }
}

TEST(Placement, IsDeterministic) {
  for (const int servers : {1, 3, 8}) {
    const Placement first = place(network_layout("resnet56"), servers);
    const Placement second = place(network_layout("resnet56"), servers);
    EXPECT_EQ(first.buckets, second.buckets);
    EXPECT_EQ(first.owner, second.owner);
  }
}

TEST(Placement, NamesARemedyWhenThereAreMoreServersThanParts) {
  EXPECT_TRUE(contains(message_of<UsageError>([&] {
                         (void)place(two_small_variables(), 3, {Kind::kFixed, 1});
                       }),
                       "3 parameter servers", "2 parts", "--partition fixed:3"));
  EXPECT_GE(place(two_small_variables(), 3, {Kind::kFixed, 3}).owner.size(), 3U);
}

TEST(Imbalance, IsTheLargestShardOverTheMean) {
  const Placement placement{{{30, 40}, {0, 30}}, {0, 1}};
  EXPECT_EQ(imbalance(placement, 2), 1.5);
  EXPECT_EQ(imbalance(placement, 4), 3.0);
}

TEST(Placement, RefusesAPartThatIsTooLargeForAMessage) {
  // With one part per variable, the part of large.weight has 77 MB.
  const ArenaLayout layout({{"small", {3}, true}, {"large.weight", {4400, 4400}, true}});
  PlacementOptions options{.partition = {PartitionRule::Kind::kFixed, 1}};
  EXPECT_TRUE(contains(message_of<UsageError>([&] { place_variables(layout, options); }),
                       "variable large.weight", "--partition"));
  options.partition.value = 2;
  EXPECT_NO_THROW(place_variables(layout, options));
}

}  // namespace
}  // namespace syncopate::ps
