// Tests what signals do to a job of --strategy local-sgd in the middle of a round, with real
// processes.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/local_sgd_jobs.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// Returns the number of steps in a trace, which a task writes while it runs.
int steps_in(const std::filesystem::path& trace) {
  const std::string text = read_text(trace);
  int steps = 0;
  for (std::size_t at = 0; (at = text.find("\"step\":", at)) != std::string::npos; ++at) ++steps;
  return steps;
}

// Two tasks that no launcher watches. Both write a trace. A step takes a millisecond or more, so
// that traces stay short.
class TwoTasks : public testing::Test {
 protected:
  Arguments task(std::size_t rank, const std::string& more) const {
    return lone_task(rank, port_, more) +
           Arguments{"--service-time", "constant:1", "--trace", scratch_ / "trace.json"};
  }
  std::filesystem::path trace_of(std::size_t rank) const {
    return scratch_ / ("trace." + std::to_string(rank) + ".json");
  }
  // Waits until the task has trained `more` more steps than its trace has now.
  bool goes_on(const RunningProgram& task, std::size_t rank, int more) const {
    const int before = steps_in(trace_of(rank));
    return task.wait_until(scratch_.path(),
                           [&] { return steps_in(trace_of(rank)) >= before + more; });
  }

  const Port port_{false};
  TemporaryFolder scratch_;
};

TEST_F(TwoTasks, OneOfWhichIsStoppedDelayNoStepOfTheOtherBeforeTheRoundEnds) {
  const std::string what =
      "--steps 600 --sync-every 600 --peer-timeout 30 --metrics " + (scratch_ / "m.jsonl").string();
  RunningProgram first(task(0, what));
  RunningProgram second(task(1, what));
  ASSERT_TRUE(goes_on(first, 0, 60));
  second.send(SIGSTOP);
  EXPECT_TRUE(goes_on(first, 0, 120));
  second.send(SIGCONT);
  successful(first.wait());
  successful(second.wait());
  const auto disturbed = summary_of(scratch_ / "m.jsonl");
  const auto alone = scratch_ / "alone.jsonl";
  successful(run_syncopate(local_sgd_tasks(2,
                                           "--model mlp --data synthetic:1x8x8:4:256 --threads 1 "
                                           "--no-progress --eval-every 0 --steps 600 "
                                           "--sync-every 600 --metrics " +
                                               alone.string())));
  EXPECT_EQ(disturbed.at("weights_hash"), summary_of(alone).at("weights_hash"));
}

// The first task has trained more steps than the second when both exchange what they have.
TEST_F(TwoTasks, AskedToStopInALongRoundExchangeWhatTheyHave) {
  const std::string round = "--sync-every 100000000 --outer slowmo --lr-schedule cosine ";
  const std::string folder = "--resume --checkpoint-dir " + (scratch_ / "ck").string() + " ";
  RunningProgram first(task(0, round + folder + "--epochs 100000000"));
  RunningProgram second(task(1, round + folder + "--epochs 100000000"));
  ASSERT_TRUE(goes_on(first, 0, 60));
  second.send(SIGTERM);
  ASSERT_TRUE(goes_on(first, 0, 60));
  first.send(SIGTERM);
  const ProgramResult stopped = first.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_EQ(second.wait().exit_code, 75);
  EXPECT_TRUE(
      contains(stopped.err, "the round ended after ", " of 100000000 steps", "computes other bits"))
      << stopped.err;

  // Two epochs more than the first task has done.
  const auto metrics = scratch_ / "m.jsonl";
  const Port port(false);
  const std::string more =
      "--sync-every 2 --outer slowmo " + folder + "--metrics " + metrics.string() + " --epochs ";
  const int epochs = steps_in(trace_of(0)) / 2 + 2;  // two steps of 128 samples per epoch
  RunningProgram third(lone_task(0, port, more + std::to_string(epochs)));
  RunningProgram fourth(lone_task(1, port, more + std::to_string(epochs)));
  const ProgramResult resumed = successful(third.wait());
  successful(fourth.wait());
  EXPECT_TRUE(contains(resumed.err, "resumed from")) << resumed.err;
  const auto samples = summary_of(metrics).at("samples").get<std::int64_t>();
  EXPECT_LE(samples, epochs * std::int64_t{256});
  EXPECT_GT(samples, epochs * std::int64_t{256} - 256) << "all that the second task had missed";
}

}  // namespace
}  // namespace syncopate::test
