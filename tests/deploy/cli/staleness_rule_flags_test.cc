#include <gtest/gtest.h>

#include <map>
#include <string>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

std::string staleness_refusal(const Arguments& words) {
  return message_if_thrown<UsageError>([&] {
    (void)parse_train(as_words("--strategy central-storage --consistency", words), Environment());
  });
}

TEST(StalenessRuleFlag, IsRefusedInOneLineWhereItHasNoEffect) {
  const std::map<Arguments, std::string> refusals = {
      {as_words("async --staleness-rule old"),
       "--staleness-rule old: expected one of none, inverse"},
      {as_words("sync --staleness-rule rennala:2"),
       "under --consistency sync no gradient is stale"},
      {as_words("ssp --staleness-rule ringmaster:2"),
       "--staleness-rule ringmaster requires --consistency async"},
      {as_words("async --optimizer adam --staleness-rule ordered-momentum"),
       "--staleness-rule ordered-momentum requires --optimizer momentum"},
      {as_words("async --optimizer momentum --nesterov --staleness-rule ordered-momentum"),
       "--staleness-rule ordered-momentum requires --optimizer momentum"}};
  for (const auto& [words, expected] : refusals) {
    const std::string line = staleness_refusal(words);
    EXPECT_TRUE(contains(line, expected)) << line;
    EXPECT_FALSE(contains(line, "\n")) << line;
  }
}

TEST(StalenessRuleFlag, TakesARuleWithItsNumber) {
  for (const std::string rule : {"ringmaster:1", "rennala:16"}) {
    EXPECT_EQ(staleness_refusal(as_words("async --staleness-rule", rule)), "");
  }
  EXPECT_EQ(
      staleness_refusal(as_words("async --optimizer momentum --staleness-rule ordered-momentum")),
      "");
}

// An update under rennala has the batches of several gradients, so its rate can follow their
// number.
TEST(StalenessRuleFlag, ScalesTheRateOfAnUpdateOfCollectedGradients) {
  const auto refusal = [](const std::string& rule) {
    return staleness_refusal(as_words("async --learning-rate-scale linear --staleness-rule", rule));
  };
  EXPECT_EQ(refusal("rennala:2"), "");
  for (const char* rule : {"none", "rennala:1", "ringmaster:2"}) {
    EXPECT_TRUE(contains(refusal(rule), "there is no global batch")) << rule;
  }
}

}  // namespace
}  // namespace syncopate
