// The words of --strategies, and of trouble.
#include "bench/compare/variant.h"

#include <gtest/gtest.h>

#include "bench/harness/fault_injection.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

TEST(AVariant, IsAStrategyWithItsConsistency) {
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
  // The paper's lambda_0, as train --staleness-rule dc-adaptive sets it.
  EXPECT_EQ(parse_variant("central-storage:async+dc-adaptive", 4, 2).consistency.compensation,
            2.0F);
}

TEST(AVariant, ThatIsNoneIsRefusedWithTheReason) {
  const std::pair<const char*, const char*> refused[] = {
      {"", "no such strategy"},
      {"mirorred", "choose from one-device, mirrored"},
      {"mirrored:async", "have a consistency to choose"},
      {"central-storage:sspp", "none of async, ssp and sync"},
      {"central-storage:async:2", "only ssp has a number"},
      {"parameter-server:ssp:x", "\"x\" is not a number"},
      {"parameter-server:async+backup:1", "backup workers belong to sync"},
      {"parameter-server:sync+backup", "backup:K"},
      {"parameter-server:async+inverse+dc", "has both inverse and dc"},
      {"parameter-server:async+dc+dc", "give one of them"},
      {"parameter-server:sync+backup:1+backup:2", "backup:K is there twice"},
      {"parameter-server:sync+inverse", "belongs to async and ssp"},
      {"mirrored+dc", "belongs to async and ssp"},
      {"parameter-server:async+fast", "none of backup:K, inverse, dc, dc-adaptive"}};
  for (const auto& [word, reason] : refused) {
    try {
      parse_variant(word, 4, 2);
      ADD_FAILURE() << word << " was taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

TEST(ARun, IsNamedByItsVariantAndSeed) {
  const RunSpec run{.variant = parse_variant("parameter-server:sync+backup:1", 4, 2), .seed = 3};
  EXPECT_EQ(run_name(run), "parameter-server_sync_backup_1-seed3");
}

TEST(Trouble, IsSpeltInWords) {
  const Kill kill = parse_kill("worker=2,at=30s,restart=5s");
  EXPECT_EQ(kill.worker, 2);
  EXPECT_EQ(kill.at_seconds, 30.0);
  EXPECT_EQ(kill.restart_seconds, 5.0);
  EXPECT_FALSE(parse_kill("worker=2,at=30").restart_seconds);
  EXPECT_EQ(parse_join("worker=4,at=500ms").at_seconds, 0.5);
}

TEST(Trouble, ThatIsMisspeltIsRefused) {
  for (const char* text : {"", "worker=2", "at=3", "worker=2,at=3,why=4", "worker=x,at=3",
                           "worker=2,at=-3", "worker=2,at=3,at=4", "worker=2,at=3,"}) {
    EXPECT_THROW(parse_kill(text), UsageError) << text;
    EXPECT_THROW(parse_join(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate::bench
