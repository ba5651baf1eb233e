// Tests the tasks of a job with parameter servers when they are started one by one, as a cluster's
// scheduler does, and when they are asked to stop.
#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

// A ListedJob consists of a chief, a worker, two servers and an evaluator, each at its own port, as
// TF_CONFIG lists them.
class ListedJob {
 public:
  explicit ListedJob(Arguments flags) : flags_(std::move(flags)) {}

  std::unique_ptr<RunningProgram> start(const std::string& type, int index) const {
    const nlohmann::json config{{"cluster",
                                 {{"chief", {chief_.endpoint()}},
                                  {"worker", {worker_.endpoint()}},
                                  {"ps", {first_server_.endpoint(), second_server_.endpoint()}}}},
                                {"task", {{"type", type}, {"index", index}}}};
    return std::make_unique<RunningProgram>(
        as_words("/usr/bin/env", "TF_CONFIG=" + config.dump(), SYNCOPATE_PROGRAM,
                 "train --strategy parameter-server --model mlp --data synthetic:1x8x8:4:1600 "
                 "--batch-size-per-replica 16 --threads 1 --no-progress --rendezvous-timeout 20 "
                 "--log-every 1") +
        flags_);
  }

  // Starts all tasks but the evaluator.
  void start_training() {
    servers_.push_back(start("ps", 1));
    servers_.push_back(start("ps", 0));
    workers_.push_back(start("worker", 0));
    workers_.push_back(start("chief", 0));
  }

  // Returns whether both servers listen at their addresses. A server that has answered is not
  // called again: many calls would fill its queue, and the next one would wait for a second.
  bool are_servers_reached() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool first = false;
    bool second = false;
    while (std::chrono::steady_clock::now() < end) {
      first = first || first_server_.answers();
      second = second || second_server_.answers();
      if (first && second) return true;
      sched_yield();
    }
    return false;
  }
  const std::string& rendezvous() const { return first_server_.endpoint(); }
  std::vector<std::unique_ptr<RunningProgram>>& servers() { return servers_; }
  // Returns the workers' programs; the chief is the last element.
  std::vector<std::unique_ptr<RunningProgram>>& workers() { return workers_; }

 private:
  const Arguments flags_;
  Port chief_{false};
  Port worker_{false};
  Port first_server_{false};
  Port second_server_{false};
  std::vector<std::unique_ptr<RunningProgram>> servers_;
  std::vector<std::unique_ptr<RunningProgram>> workers_;
};

TEST(ATfConfigJob, TrainsServesAndEvaluatesInTheRolesItLists) {
  const TemporaryFolder scratch;
  ListedJob job(as_words("--steps 120 --checkpoint-dir", scratch / "ck",
                         "--checkpoint-every 40 --service-time constant:10 --metrics",
                         scratch / "m.jsonl"));
  const auto evaluator = job.start("evaluator", 0);
  job.start_training();
  EXPECT_TRUE(job.are_servers_reached());
  const ProgramResult worker = job.workers().at(0)->wait();
  const ProgramResult chief = successful(job.workers().at(1)->wait());
  EXPECT_EQ(worker.exit_code, 0) << worker.err;
  EXPECT_TRUE(contains((chief.out + worker.out), "test accuracy"));
  for (const auto& server : job.servers()) {
    const ProgramResult result = successful(server->wait());
    EXPECT_TRUE(contains(result.err, "served "));
  }
  const ProgramResult measured = successful(evaluator->wait());
  EXPECT_TRUE(contains(measured.out, "step 120: test accuracy"));
  const auto summary = summary_of(scratch / "m.jsonl");
  EXPECT_EQ(summary.at("steps"), 120);
  EXPECT_EQ(summary.at("staleness").size(), 2U);
}

// The test parameter is the index of the server that is killed.
class AJobStartedByHand : public testing::TestWithParam<int> {};

TEST_P(AJobStartedByHand, ContinuesWhenAServerIsRestarted) {
  const TemporaryFolder scratch;
  const Port rendezvous(false);
  const Arguments meet{"--rendezvous", rendezvous.endpoint(),  "--nonce",
                       "by hand",      "--rendezvous-timeout", "20"};
  const Arguments keep{"--checkpoint-dir", scratch / "ck"};
  const auto serve = [&](int index) {
    return std::make_unique<RunningProgram>(
        syncopate_command(as_words("serve --index", std::to_string(index),
                                   "--servers 2 --workers 2 --snapshot-every 0.2") +
                          meet + keep));
  };
  const auto train = [&](int rank) {
    return std::make_unique<RunningProgram>(syncopate_command(
        as_words("train --strategy parameter-server --model mlp --data synthetic:1x8x8:4:1600 "
                 "--batch-size-per-replica 16 --threads 1 --no-progress --log-every 1 --steps 300 "
                 "--service-time constant:10 --metrics",
                 scratch / "m.jsonl", "--rank", std::to_string(rank),
                 "--world-size 2 --servers 2") +
        meet + keep));
  };
  std::vector<std::unique_ptr<RunningProgram>> tasks;
  for (const int index : {0, 1}) tasks.push_back(serve(index));
  for (const int rank : {0, 1}) tasks.push_back(train(rank));
  RunningProgram& chief = *tasks[2];
  // The kill must follow a snapshot of each shard, since a restarted server can only resume from a
  // snapshot. The test looks for the snapshot files whenever the metrics file grows, which is
  // often.
  ASSERT_TRUE(chief.wait_until((scratch / "m.jsonl").parent_path(), [&] {
    const std::vector<std::string> names = names_in(scratch / "ck");
    return std::ranges::all_of(std::array{"shard-0-", "shard-1-"}, [&](const char* shard) {
      return std::ranges::any_of(names, [&](const std::string& name) {
        return name.starts_with(shard) && name.ends_with(".snapshot");
      });
    });
  }));
  std::unique_ptr<RunningProgram>& killed = tasks[static_cast<std::size_t>(GetParam())];
  killed->send(SIGKILL);
  killed->wait();
  // The wait is long enough that workers send heartbeats which the killed server does not answer.
  EXPECT_FALSE(chief.ends_within(std::chrono::milliseconds(1200)));
  killed = serve(GetParam());
  for (const auto& task : tasks) successful(task->wait());
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("steps"), 300);
}

INSTANTIATE_TEST_SUITE_P(WithServer, AJobStartedByHand, testing::Values(0, 1));

TEST(AnEvaluator, EndsWithItsJob) {
  const TemporaryFolder scratch;
  ListedJob job(as_words("--steps 1000000 --checkpoint-dir", scratch / "ck",
                         "--checkpoint-every 20 --peer-timeout 0.5 --metrics",
                         scratch / "m.jsonl"));
  const auto evaluator = job.start("evaluator", 0);
  job.start_training();
  ASSERT_TRUE(
      job.workers().at(1)->wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\"", 20));
  for (const auto* tasks : {&job.servers(), &job.workers()}) {
    for (const auto& task : *tasks) task->send(SIGKILL);
  }
  const ProgramResult result = evaluator->wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(contains(result.err, job.rendezvous(), "10.5 s"));
}

TEST(AnEvaluator, MeasuresTheLastCheckpointOfAJobThatARuleEnds) {
  const TemporaryFolder scratch;
  ListedJob job(as_words("--steps 1000000 --checkpoint-dir", scratch / "ck",
                         "--stop-at loss=100 --service-time constant:10 --metrics",
                         scratch / "m.jsonl"));
  const auto evaluator = job.start("evaluator", 0);
  job.start_training();
  for (const auto* tasks : {&job.servers(), &job.workers()}) {
    for (const auto& task : *tasks) EXPECT_EQ(task->wait().exit_code, 0);
  }
  const ProgramResult result = successful(evaluator->wait());
  const std::string steps = summary_of(scratch / "m.jsonl").at("steps").dump();
  EXPECT_TRUE(contains(result.out, "step " + steps + ": test accuracy"));
}

TEST(AnEvaluator, SkipsADamagedCheckpointWithALine) {
  const TemporaryFolder scratch;
  successful(
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:4:1600 --steps 5 "
                             "--no-progress --checkpoint-dir",
                             scratch / "ck")));
  const std::string good = read_text(scratch / ("ck/" + names_in(scratch / "ck").front()));
  const std::string newer = "checkpoint-000000000009.safetensors";
  std::ofstream(scratch / ("ck/" + newer), std::ios::binary) << good.substr(0, good.size() / 2);
  const ListedJob job({"--steps", "5", "--checkpoint-dir", scratch / "ck"});
  const ProgramResult result = successful(job.start("evaluator", 0)->wait());
  EXPECT_TRUE(contains(result.out, "step 5: test accuracy"));
  EXPECT_TRUE(contains(result.err, newer + " is cut short"));
}

class OneWorkerThatIsAskedToStop : public testing::TestWithParam<const char*> {};

TEST_P(OneWorkerThatIsAskedToStop, StopsAllWithACheckpoint) {
  const TemporaryFolder scratch;
  ListedJob job(as_words("--steps 1000000 --checkpoint-dir", scratch / "ck", "--consistency",
                         GetParam(), "--metrics", scratch / "m.jsonl"));
  job.start_training();
  ASSERT_TRUE(
      job.workers().at(1)->wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\"", 20));
  job.workers().at(0)->send(SIGTERM);
  for (const auto& worker : job.workers()) {
    const ProgramResult result = worker->wait();
    EXPECT_EQ(result.exit_code, 75) << result.err;
  }
  for (const auto& server : job.servers()) EXPECT_EQ(server->wait().exit_code, 0);
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

INSTANTIATE_TEST_SUITE_P(Under, OneWorkerThatIsAskedToStop,
                         testing::Values("async", "ssp", "sync"));

class AStoppedLaunch : public testing::TestWithParam<int> {};

TEST_P(AStoppedLaunch, EndsWith75AndResumesItsCheckpoint) {
  const TemporaryFolder scratch;
  const Arguments job = parameter_servers({.workers = 3, .servers = 2},
                                          as_words("--model mlp --data synthetic:1x8x8:4 --threads "
                                                   "1 --no-progress --log-every 1 --checkpoint-dir",
                                                   scratch / "ck"));
  RunningProgram program(
      syncopate_command(job + Arguments{"--epochs", "100000", "--metrics", scratch / "m.jsonl"}));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\"", 20));
  program.send(GetParam());
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  // The newest checkpoint was written when the job stopped. Older checkpoints, from ends of epochs,
  // exist if a slow machine delivered the stop signal late.
  const std::vector<std::string> checkpoints = names_in(scratch / "ck");
  ASSERT_FALSE(checkpoints.empty());
  // The name of a checkpoint has the form "checkpoint-000000000123.safetensors".
  const int step = std::stoi(checkpoints.back().substr(11, 12));
  EXPECT_GE(step, 20);
  const ProgramResult rest =
      successful(run_syncopate(job + as_words("--steps", std::to_string(step + 9),
                                              "--resume --metrics", scratch / "rest.jsonl")));
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("steps"), step + 9);
}

INSTANTIATE_TEST_SUITE_P(By, AStoppedLaunch,
                         testing::Values(SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXCPU));

struct Described {
  Arguments flags;
  std::vector<std::string> says;
  int samples_per_update = 0;
};

class AnAsynchronousJob : public testing::TestWithParam<Described> {};

TEST_P(AnAsynchronousJob, PrintsItsSettingsAtTheStart) {
  const TemporaryFolder scratch;
  const ProgramResult result = successful(
      run_syncopate(as_words("launch --workers 3 --servers 1 -- train --strategy parameter-server "
                             "--model mlp --data synthetic:1x8x8:4:384 --batch-size-per-replica 64 "
                             "--steps 3 --threads 1 --no-progress --metrics",
                             scratch / "m.jsonl") +
                    GetParam().flags));
  for (const std::string& said : GetParam().says) EXPECT_TRUE(contains(result.err, said));
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("global_batch"), GetParam().samples_per_update);
}

INSTANTIATE_TEST_SUITE_P(
    Under, AnAsynchronousJob,
    testing::Values(Described{{},
                              {"384 training and", "; 6 batches of 64 per epoch",
                               "parameter-server: 3 workers, without a common step, 64 samples"},
                              64},
                    Described{{"--consistency", "sync", "--backup-workers", "1"},
                              {"384 training and", "; 3 batches of 128 per epoch",
                               "parameter-server: 3 workers, the slowest 1 not waited for, 128"},
                              128}),
    [](const auto& job) { return job.param.flags.empty() ? "async" : "backup"; });

}  // namespace
}  // namespace syncopate::test
