// Disturbs jobs under each consistency rule for most of a minute.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/end_to_end/strangers/disturbed_job.h"

namespace syncopate::test {
namespace {

struct Rule {
  const char* name;
  Arguments flags;
  bool is_deterministic = false;
};
std::ostream& operator<<(std::ostream& out, const Rule& rule) { return out << rule.name; }

class AMinuteAmongStrangers : public testing::TestWithParam<Rule> {};

TEST_P(AMinuteAmongStrangers, TrainsEverySampleOnce) {
  constexpr int kSteps = 1200;
  const Rule& rule = GetParam();
  const DisturbedJob job(
      {.workers = 3, .servers = 2}, rule.flags,
      {.steps = kSteps, .milliseconds_per_step = rule.is_deterministic ? 30 : 90});
  if (rule.is_deterministic) {
    EXPECT_EQ(job.weights_hash(), job.undisturbed_weights_hash());
    EXPECT_EQ(job.samples(), std::int64_t{kSteps} * 24 * 3);
  } else {
    EXPECT_EQ(job.samples(), std::int64_t{kSteps} * 24);
  }
  job.expect_strangers_were_counted(2);
}

INSTANTIATE_TEST_SUITE_P(
    Under, AMinuteAmongStrangers,
    testing::Values(Rule{"sync", {"--consistency", "sync"}, true},
                    Rule{"slow_links", {"--consistency", "sync", "--link-delay", "1ms"}, true},
                    Rule{"async", {"--consistency", "async"}},
                    Rule{"ssp", {"--consistency", "ssp", "--max-staleness", "2"}}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace syncopate::test
