#include "ps/shard/stale_gradients.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/ps/shard/one_value.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

ConsistencyOptions rule(std::string_view text) {
  ConsistencyOptions options{.consistency = Consistency::kAsync};
  set_staleness_rule(options, text, "--staleness-rule");
  return options;
}

TEST(Ringmaster, DropsAGradientWhoseStalenessIsTheNumberOrMore) {
  OneValue one(rule("ringmaster:2"), 3);
  one.push(0, 1, 1);
  one.push(1, 1, 1);
  (void)one.log();
  one.push(2, 1, 1);
  EXPECT_EQ(one.log(), "dropped 2:1, answered 2:1 v3 =-2");
  one.push(2, 2, 2);
  EXPECT_EQ(one.log(), "applied 2:2 v4 s1, answered 2:2 v4 =-3");
}

TEST(Rennala, UpdatesByTheMeanOfGradientsOfTheSameValues) {
  OneValue one(rule("rennala:2"), 3);
  one.push(0, 1, 1, {.gradient = 4.0F});
  EXPECT_EQ(one.log(), "applied 0:1 v2, answered 0:1 v2 =0") << "the worker goes on at once";
  one.push(0, 2, 2, {.gradient = 2.0F});
  EXPECT_EQ(one.log(), "applied 0:2 v3, answered 0:2 v3 =-3") << "the mean of 4 and 2";
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "dropped 1:1, answered 1:1 v3 =-3") << "a gradient of earlier values";
  one.push(2, 1, 3);
  one.push(0, 3, 3);
  EXPECT_EQ(one.log(), "applied 2:1 v4, answered 2:1 v4 =-3, applied 0:3 v5, answered 0:3 v5 =-4")
      << "the second gradient is not stale: the values did not change";
}

TEST(StaleRules, DropAGradientOfUnknownValues) {
  for (const std::string_view text : {"ringmaster:5", "rennala:2"}) {
    OneValue one(rule(text), 1);
    one.push(0, 1, 0);
    EXPECT_EQ(one.log(), "dropped 0:1, answered 0:1 v1 =0") << text;
    one.push(0, 2, 7);
    EXPECT_EQ(one.log(), "dropped 0:2, answered 0:2 v1 =0") << "values that the shard never had";
  }
}

// A dropped push advances its worker's clock, and a snapshot contains exactly the clocks it names.
TEST(StaleRules, KeepALateGradientWhileASnapshotHoldsIt) {
  OneValue one(rule("ringmaster:1"), 2);
  one.push(0, 1, 1);
  (void)one.log();
  (void)one.shard().freeze(1);
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "");
  one.shard().thaw();
  one.work();
  EXPECT_EQ(one.log(), "dropped 1:1, answered 1:1 v2 =-1");
}

// A restarted coordinator may take the push for one that is under way.
TEST(StaleRules, ReportADroppedPushOfARestoredSnapshotAgain) {
  OneValue one(rule("ringmaster:1"), 2);
  one.push(0, 1, 1);
  one.push(1, 1, 1);
  const ShardSnapshot snapshot = one.shard().snapshot();
  one.shard().restore(snapshot);
  one.shard().join(1, 1, 0);
  (void)one.log();
  const float gradient = 1.0F;
  one.shard().push({.id = {1, 1, 1},
                    .version = 1,
                    .gradient = {.codec = Codec::kF32,
                                 .num_elements = 1,
                                 .bytes = std::as_bytes(std::span(&gradient, 1))}});
  std::vector<ShardEvent> events;
  one.shard().work(0, events);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.front().kind, ShardEvent::Kind::kDropped);
  EXPECT_FALSE(events.front().is_duplicate);
}

TEST(Rennala, CountsUpdatesForTheOptimizer) {
  const OptimizerOptions adam{.name = "adam"};
  const auto collecting = make_shard_optimizer(adam, rule("rennala:2"), 1);
  const auto plain = make_optimizer(adam);
  std::vector<std::vector<float>> slots(3, std::vector<float>(1));
  std::vector<std::vector<float>> expected_slots(2, std::vector<float>(1));
  const std::vector<std::span<float>> spans(slots.begin(), slots.end());
  const std::vector<std::span<float>> expected_spans(expected_slots.begin(), expected_slots.end());
  std::array value{1.0F};
  std::array expected{1.0F};
  for (std::int64_t update = 1; update <= 3; ++update) {
    const std::array gradients{0.5F * static_cast<float>(update), 1.5F};
    for (std::int64_t i = 0; i < 2; ++i) {
      collecting->update({.learning_rate = 0.1F, .step = 2 * update - 1 + i}, value,
                         std::span(gradients).subspan(static_cast<std::size_t>(i), 1), spans, true);
    }
    const std::array mean{(gradients[0] + gradients[1]) / 2.0F};
    plain->update({.learning_rate = 0.1F, .step = update}, expected, mean, expected_spans, true);
    EXPECT_EQ(value, expected) << "update " << update;
  }
}

TEST(DropCounter, TellsStepsDroppedInPartFromWholeOnes) {
  DropCounter counter;
  const auto step = [&](std::uint64_t sequence, const std::vector<bool>& dropped) {
    for (const bool is_dropped : dropped) counter.add(sequence, is_dropped, dropped.size());
  };
  step(1, {false, false, false});
  step(2, {true, true, true});
  step(3, {false, true, false});
  step(5, {true, false, true});
  EXPECT_EQ(counter.totals().whole, 1);
  EXPECT_EQ(counter.totals().in_part, 2);
}

TEST(StalenessRuleText, IsReadAsItIsWritten) {
  for (const std::string text :
       {"none", "inverse", "dc", "dc-adaptive", "ringmaster:1", "rennala:16", "ordered-momentum"}) {
    EXPECT_EQ(staleness_rule_text(rule(text)), text);
  }
}

TEST(StalenessRuleText, IsRefusedInOneLine) {
  for (const auto& [text, expected] :
       {std::pair{"ringmaster", "expected one of none, inverse, dc, dc-adaptive, ringmaster:N"},
        {"dc:3", "expected one of"},
        {"", "expected one of"},
        {"rennala:0", "expected a whole number from 1 to 2147483648 after the colon"},
        {"ringmaster:2147483649", "expected a whole number"},
        {"ringmaster:", "expected a whole number"},
        {"ringmaster:2x", "expected a whole number"}}) {
    const std::string line = message_if_thrown<UsageError>([&] { (void)rule(text); });
    EXPECT_TRUE(contains(line, expected)) << text << ": " << line;
    EXPECT_TRUE(contains(line, "--staleness-rule")) << line;
  }
}

TEST(OrderedMomentum, RequiresPlainMomentum) {
  for (const OptimizerOptions& other :
       {OptimizerOptions{.name = "sgd"}, OptimizerOptions{.name = "adam"},
        OptimizerOptions{.name = "momentum", .nesterov = true}}) {
    EXPECT_TRUE(contains(message_if_thrown<UsageError>([&] {
                           (void)make_shard_optimizer(other, rule("ordered-momentum"), 2);
                         }),
                         "requires --optimizer momentum without --nesterov"))
        << other.name;
  }
}

TEST(StaleRules, RequireAsync) {
  for (const std::string_view text : {"ringmaster:2", "rennala:2", "ordered-momentum"}) {
    ConsistencyOptions options = rule(text);
    options.consistency = Consistency::kSsp;
    EXPECT_TRUE(contains(message_if_thrown<UsageError>([&] { check_consistency(options); }),
                         "requires --consistency async"))
        << text;
  }
}

}  // namespace
}  // namespace syncopate::ps
