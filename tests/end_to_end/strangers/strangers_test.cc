// Tests that a job trains as if alone while strangers disturb all its ports.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/strangers/disturbed_job.h"
#include "tests/end_to_end/strangers/strangers.h"
#include "tests/end_to_end/support/local_sgd_jobs.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

TEST(SynchronousServers, TrainTheSameWeightsAmongStrangers) {
  const DisturbedJob job({.workers = 2, .servers = 2}, {"--consistency", "sync"}, {.steps = 150});
  EXPECT_EQ(job.weights_hash(), job.undisturbed_weights_hash());
  job.expect_strangers_were_counted(2);
  EXPECT_GE(job.ports(), 3U) << "control, and data of two servers";
}

// The ports of a ring are open for a moment only: rank 0 waits for rank 1 among strangers.
TEST(Rendezvous, IsReachedAmongStrangers) {
  const Port port(false);
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  const auto task = [&](const std::string& rank) {
    return with_usual_file_limit(syncopate_command(
        as_words("train --strategy multi-worker-mirrored --rank", rank,
                 "--world-size 2 --rendezvous", port.endpoint(), "--metrics", metrics) +
        training_of(20)));
  };
  RunningProgram first(task("0"));
  Strangers strangers({first.pid()}, {});
  EXPECT_TRUE(strangers.await_first_round());
  RunningProgram second(task("1"));
  for (RunningProgram* const program : {&second, &first}) successful(program->wait());
  strangers.stop();
  EXPECT_GE(strangers.attempts().at("idle connections"), 1000);
  EXPECT_EQ(summary_of(metrics).at("weights_hash").dump(),
            weights_hash_without_strangers(multi_worker(2), 20));
}

TEST(RingOverSlowLinks, TrainsTheSameWeightsAmongStrangers) {
  // Every kind of disturbance takes about two seconds for each port, and longer on a busy machine.
  const DisturbedJob job(multi_worker(2) + Arguments{"--link-delay", "1ms"}, {.steps = 200});
  EXPECT_EQ(job.weights_hash(), job.undisturbed_weights_hash());
  EXPECT_GE(job.ports(), 2U) << "the forwarders of both workers";
}

TEST(LocalSgdOverSlowLinks, TrainsTheSameWeightsAmongStrangers) {
  const DisturbedJob job(local_sgd_tasks(2, "--sync-every 10 --link-delay 1ms"), {.steps = 200});
  EXPECT_EQ(job.weights_hash(), job.undisturbed_weights_hash());
  EXPECT_GE(job.ports(), 2U) << "the forwarders of both workers";
}

}  // namespace
}  // namespace syncopate::test
