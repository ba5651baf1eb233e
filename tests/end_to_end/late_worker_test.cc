// Tests `launch --join`: a worker that joins a job which already trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

struct Late {
  const char* name;
  int worker;
  const char* consistency;
};
std::ostream& operator<<(std::ostream& out, const Late& late) { return out << late.name; }

class ALateWorker : public testing::TestWithParam<Late> {};

// The epoch has 200 batches, of which one worker trains at most 50 per second.
const Arguments kNetwork = as_words(
    "--model mlp --data synthetic:1x8x8:4:800 --batch-size-per-replica 8 --service-time "
    "constant:20 --epochs 2 --threads 1 --no-progress");

TEST_P(ALateWorker, TrainsAPartOfTheSamplesEachOnce) {
  const TemporaryFolder scratch;
  const std::string metrics = scratch / "m.jsonl";
  const std::string join = "worker=" + std::to_string(GetParam().worker) + ",at=500ms";
  const ProgramResult result =
      successful(run_syncopate(as_words("launch --workers 2 --servers 2 --join", join,
                                        "-- train --strategy parameter-server --consistency",
                                        GetParam().consistency, "--metrics", metrics) +
                               kNetwork));
  const nlohmann::json summary = summary_of(metrics);
  EXPECT_EQ(summary.at("samples"), 1600) << "each of two epochs once";
  EXPECT_EQ(summary.at("steps"), 200);
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::vector<int> workers;
  for (const nlohmann::json& line : metrics_lines(metrics, "worker")) {
    workers.push_back(line.at("worker"));
    EXPECT_GT(line.at("steps"), 0) << line;
    steps += line.at("steps").get<std::int64_t>();
    samples += line.at("samples").get<std::int64_t>();
  }
  EXPECT_EQ(std::ranges::count(workers, GetParam().worker), 1) << result.err;
  EXPECT_EQ(workers.size(), GetParam().worker < 2 ? 2U : 3U);
  EXPECT_EQ(steps, 200);
  EXPECT_EQ(samples, 1600);
}

INSTANTIATE_TEST_SUITE_P(Of, ALateWorker,
                         testing::Values(Late{"TheLast", 1, "async"}, Late{"TheFirst", 0, "async"},
                                         Late{"OneMore", 2, "async"}, Late{"Ssp", 1, "ssp"}),
                         [](const auto& parameters) { return parameters.param.name; });

TEST(LateWorkers, AreNotStartedWhenTheJobEndsBefore) {
  const ProgramResult result = successful(
      run_syncopate(as_words("launch --workers 2 --servers 1 --join worker=1,at=1000s -- train "
                             "--strategy parameter-server") +
                    kNetwork + Arguments{"--service-time", "constant:1"}));
  EXPECT_TRUE(contains(result.err, "launch: worker 1 is not started: the job is ending"));
}

}  // namespace
}  // namespace syncopate::test
