// Tests the parsing of --strategies and of the fault injection flags.
#include "bench/compare/variant.h"

#include <gtest/gtest.h>

#include "bench/harness/fault_injection.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

TEST(Variant, HasAStrategyAndItsConsistency) {
  const Variant plain = parse_variant("mirrored", 4, 2);
  EXPECT_EQ(plain.label, "mirrored");
  EXPECT_EQ(plain.strategy, "mirrored");
  EXPECT_EQ(plain.consistency.consistency, ps::Consistency::kSync);
  EXPECT_EQ(plain.workers, 4);
  EXPECT_EQ(plain.servers, 0);
  const Variant ssp = parse_variant("parameter-server:ssp:2+inverse", 4, 2);
  EXPECT_EQ(ssp.servers, 2);
  EXPECT_EQ(ssp.consistency.consistency, ps::Consistency::kSsp);
  EXPECT_EQ(ssp.consistency.max_staleness, 2);
  EXPECT_EQ(ssp.consistency.staleness_rule, ps::StalenessRule::kInverse);
  const Variant backup = parse_variant("parameter-server:sync+backup:1", 4, 2);
  EXPECT_EQ(backup.consistency.consistency, ps::Consistency::kSync);
  EXPECT_EQ(backup.consistency.backup_workers, 1);
  EXPECT_EQ(parse_variant("one-device", 4, 2).workers, 1);
  EXPECT_EQ(parse_variant("parameter-server", 4, 2).consistency.consistency,
            ps::Consistency::kAsync);
  // The expected compensation is the lambda_0 of Zheng et al. 2017, which train --staleness-rule
  // dc-adaptive also sets.
  EXPECT_EQ(parse_variant("central-storage:async+dc-adaptive", 4, 2).consistency.compensation,
            2.0F);
}

TEST(Variant, HasARuleForStaleGradientsWithItsNumber) {
  const Variant ringmaster = parse_variant("parameter-server:async+ringmaster:2147483648", 4, 2);
  EXPECT_EQ(ringmaster.consistency.staleness_rule, ps::StalenessRule::kRingmaster);
  EXPECT_EQ(ringmaster.consistency.rule_number, std::int64_t{1} << 31);
  EXPECT_EQ(
      parse_variant("central-storage:async+ordered-momentum", 4, 2).consistency.staleness_rule,
      ps::StalenessRule::kOrderedMomentum);
}

TEST(Variant, OfAPipelineHasStagesAndMicroBatches) {
  const Variant plain = parse_variant("pipeline", 4, 2);
  EXPECT_EQ(plain.workers, 4);
  EXPECT_EQ(plain.servers, 0);
  EXPECT_EQ(plain.micro_batches, 4) << "as many samples per step as four replicas";
  EXPECT_TRUE(plain.has_tasks());
  EXPECT_EQ(parse_variant("pipeline:16{learning-rate=0.1}", 4, 2).micro_batches, 16);
}

TEST(Variant, OfLocalUpdatesHasAnOuterStepAndTheStepsOfARound) {
  const Variant variant = parse_variant("local-sgd:diloco:64{outer-momentum=0.5}", 4, 2);
  EXPECT_EQ(variant.outer, "diloco");
  EXPECT_EQ(variant.sync_every, 64);
  EXPECT_EQ(variant.flags, std::vector<std::string>{"--outer-momentum=0.5"});
  EXPECT_EQ(variant.workers, 4);
  EXPECT_EQ(variant.servers, 0);
  EXPECT_TRUE(variant.is_synchronous);
  EXPECT_TRUE(variant.has_tasks());
}

TEST(Variant, MayPushDisplacements) {
  const Variant variant = parse_variant("parameter-server:async+displacement:average:8", 4, 2);
  EXPECT_TRUE(variant.pushes_displacements);
  EXPECT_EQ(variant.outer, "average");
  EXPECT_EQ(variant.sync_every, 8);
  EXPECT_EQ(variant.servers, 2);
  const Variant delayed =
      parse_variant("parameter-server:async+displacement:delayed-nesterov:4:8", 4, 2);
  EXPECT_EQ(delayed.outer, "delayed-nesterov:4");
  EXPECT_EQ(delayed.sync_every, 8);
}

TEST(Variant, MayMergeDisplacements) {
  const Variant variant =
      parse_variant("parameter-server:quorum:3:0.5+displacement:diloco:8", 4, 2);
  EXPECT_EQ(variant.consistency.consistency, ps::Consistency::kQuorum);
  EXPECT_EQ(variant.consistency.quorum, 3);
  EXPECT_EQ(variant.consistency.grace, 0.5);
  EXPECT_FALSE(variant.is_synchronous);
  EXPECT_EQ(variant.servers, 1) << "it decides each merge";
  EXPECT_EQ(parse_variant("central-storage:quorum+displacement:diloco:8", 4, 2).servers, 0);
}

TEST(Variant, OfPlanHasTheRoundsOfCompareButSearchesNone) {
  for (const char* word :
       {"local-sgd:post-local:8", "parameter-server:async+displacement:diloco:8"}) {
    const Variant variant = parse_variant(word, 4, 2, SharedBy::kPlan);
    EXPECT_EQ(variant.outer, parse_variant(word, 4, 2).outer) << word;
    EXPECT_EQ(variant.sync_every, 8) << word;
  }
  EXPECT_TRUE(contains(message_of<UsageError>(
                           [] { parse_variant("local-sgd:average:tuned", 4, 2, SharedBy::kPlan); }),
                       "expected a number from 1 to 999999, found \"tuned\""));
}

TEST(Variant, IsRefusedWithAReason) {
  const std::pair<const char*, const char*> refused[] = {
      {"", "no such strategy"},
      {"pipeline:0", "expected a number from 1 to 65536, found \"0\""},
      {"pipeline:65537", "expected a number from 1 to 65536, found \"65537\""},
      {"pipeline:1000000", "expected a number from 1 to 65536, found \"1000000\""},
      {"pipeline:2:3", "expected one number of micro-batches"},
      {"pipeline:sync", "expected a number"},
      {"pipeline+backup:1", "backup workers require sync"},
      {"local-sgd",
       "expected the number of steps between two exchanges, such as local-sgd:average:8"},
      {"local-sgd:diloco", "such as local-sgd:diloco:8; a larger number sends less"},
      {"local-sgd:64", "expected average, post-local, slowmo or diloco, found \"64\""},
      {"local-sgd:average:0", "expected a number from 1 to 999999, found \"0\""},
      {"local-sgd:average:8:2", "expected the number of steps"},
      {"local-sgd:average:8{sync-every=4}", "--sync-every: compare sets it for each run"},
      {"mirrored:8", "have a consistency to choose"},
      {"mirorred", "did you mean 'mirrored'? Choose one of one-device, mirrored"},
      {"mirrored:async", "have a consistency to choose"},
      {"central-storage:sspp", "expected async, ssp, quorum or sync"},
      {"central-storage:async:2", "only ssp takes a number"},
      {"parameter-server:ssp:x", "expected a number from 0 to 999999, found \"x\""},
      {"parameter-server:async+backup:1", "backup workers require sync"},
      {"parameter-server:sync+backup", "backup:K"},
      {"parameter-server:async+inverse+dc", "has both inverse and dc"},
      {"parameter-server:async+dc+dc", "give one of them"},
      {"parameter-server:sync+backup:1+backup:2", "backup:K is given twice"},
      {"parameter-server:sync+inverse",
       "\"+inverse\" is a rule for stale gradients, which async and ssp have"},
      {"mirrored+dc", "\"+dc\" is a rule for stale gradients"},
      {"parameter-server:async+fast",
       "expected backup:K, displacement:OUTER:N, inverse, dc, dc-adaptive, ringmaster:N, rennala:N "
       "or ordered-momentum"},
      {"parameter-server:sync+displacement:average:4",
       "displacements require async, ssp or quorum"},
      {"parameter-server:quorum:2", "quorum merges displacements; add one"},
      {"parameter-server:quorum:5+displacement:average:8",
       "expected a number from 1 to 4, found \"5\""},
      {"parameter-server:quorum:2:x+displacement:average:8", "--grace x: expected seconds"},
      {"parameter-server:quorum:2:1:1+displacement:average:8", "such as quorum:2:0.5"},
      {"parameter-server:async+displacement", "such as displacement:average:8"},
      {"parameter-server:async+displacement:delayed-nesterov:4",
       "such as displacement:delayed-nesterov:4:8"},
      {"local-sgd:delayed-nesterov:4:8", "found \"delayed-nesterov\""},
      {"parameter-server:async+displacement:average:0", "expected a number from 1"},
      {"parameter-server:async+none", "found \"+none\""},
      {"parameter-server:async+dc:2", "--staleness-rule dc:2: expected one of"},
      {"parameter-server:async+ringmaster", "ringmaster:N"},
      {"parameter-server:async+ringmaster:0", "expected a whole number from 1 to 2147483648"},
      {"parameter-server:async+rennala:2+ringmaster:2", "has both rennala:2 and ringmaster:2"},
      {"parameter-server:ssp:2+rennala:2", "--staleness-rule rennala requires --consistency async"},
      {"mirrored{learning-rte=0.1}",
       "--strategies mirrored{learning-rte=0.1}: train has no flag \"learning-rte\"; did you mean "
       "learning-rate?"},
      {"mirrored{--learning-rate=0.1}", "did you mean learning-rate?"},
      {"mirrored{xyzzy}", "train --help lists its flags"},
      {"mirrored{max-staleness=2}", "--max-staleness: compare sets it for each run"},
      {"mirrored{batch-size-per-replica=0}", "--batch-size-per-replica 0: expected a whole number"},
      {"mirrored{batch-size=8,batch-size-per-replica=2}", "exclude each other"},
      {"mirrored{momentum=0.1,momentum=0.2}", "momentum is given twice"},
      {"mirrored{}", "expected flags of train in the braces"},
      {"mirrored{learning-rate=0.1", "expected } at the end"},
      {"mirrored{learning-rate=0.1}+dc", "flags in braces come last"},
      {"{learning-rate=0.1}", "no such strategy"}};
  for (const auto& [word, reason] : refused) {
    EXPECT_TRUE(
        contains(message_of<UsageError>([&, &word = word] { parse_variant(word, 4, 2); }), reason))
        << word;
  }
}

TEST(Variant, HasItsOwnFlagsInBraces) {
  const std::string word = "parameter-server:sync+backup:1{learning-rate=0.03,nesterov}";
  const Variant variant = parse_variant(word, 4, 2);
  EXPECT_EQ(variant.label, word);
  EXPECT_EQ(variant.backup_workers, 1);
  EXPECT_EQ(variant.flags, (std::vector<std::string>{"--learning-rate=0.03", "--nesterov"}));
  EXPECT_TRUE(variant.has_flag("--learning-rate"));
  EXPECT_FALSE(variant.has_flag("--learning"));
  EXPECT_EQ(parse_variant("mirrored{lr-milestones=1,2.5,nesterov}", 4, 2).flags,
            (std::vector<std::string>{"--lr-milestones=1,2.5", "--nesterov"}));
}

TEST(Variants, AreSeparatedByCommasOutsideBraces) {
  EXPECT_EQ(
      split_variants("mirrored{a=1,b},one-device,parameter-server:async{c=2}"),
      (std::vector<std::string>{"mirrored{a=1,b}", "one-device", "parameter-server:async{c=2}"}));
  EXPECT_EQ(split_variants("mirrored"), std::vector<std::string>{"mirrored"});
}

TEST(RunName, HasVariantAndSeed) {
  const RunSpec run{.variant = parse_variant("parameter-server:sync+backup:1", 4, 2), .seed = 3};
  EXPECT_EQ(run_name(run), "parameter-server_sync_backup_1-seed3");
}

TEST(FaultInjectionFlags, AreParsed) {
  const Kill kill = parse_kill("worker=2,at=30s,restart=5s");
  EXPECT_EQ(kill.worker, 2);
  EXPECT_EQ(kill.at_seconds, 30.0);
  EXPECT_EQ(kill.restart_seconds, 5.0);
  EXPECT_FALSE(parse_kill("worker=2,at=30").restart_seconds);
  EXPECT_EQ(parse_join("worker=4,at=500ms").at_seconds, 0.5);
}

TEST(FaultInjectionFlags, AreRefusedIfMalformed) {
  for (const char* text : {"", "worker=2", "at=3", "worker=2,at=3,why=4", "worker=x,at=3",
                           "worker=2,at=-3", "worker=2,at=3,at=4", "worker=2,at=3,"}) {
    EXPECT_THROW(parse_kill(text), UsageError) << text;
    EXPECT_THROW(parse_join(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate::bench
