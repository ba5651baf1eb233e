// Tests the folder of a comparison and its runs: what it reuses, refuses, numbers and removes.
#include "bench/compare/run_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/run_result.h"
#include "deploy/cli/command_line.h"
#include "tests/bench/compare/run_files_case.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

TEST_F(RunFilesTest, KnowWhichRunsAreDoneWhenTheyAreOpenedAgain) {
  const Planned planned(a_comparison());
  {
    RunFiles files(dir_);
    planned.begin(files);
    train(files, planned.runs[0]);
    files.finish(planned.runs[0], {});
    files.finish(planned.runs[1], {.failure = "worker 1 fell over"});
  }
  RunFiles files(dir_);
  planned.begin(files);
  EXPECT_TRUE(files.is_done(planned.runs[0]));
  EXPECT_FALSE(files.is_done(planned.runs[1])) << "it is tried again";
  EXPECT_TRUE(files.has_failed(planned.runs[1]));
  EXPECT_FALSE(files.has_failed(planned.runs[2]));
  EXPECT_TRUE(fs::exists(dir_ / "comparison.json"));
}

TEST_F(RunFilesTest, TreatARunWithoutASummaryAsFailed) {
  const Planned planned(a_comparison());
  RunFiles files(dir_);
  planned.begin(files);
  files.finish(planned.runs[0], {});
  EXPECT_FALSE(files.is_done(planned.runs[0]));
  EXPECT_EQ(read_run(files.result(planned.runs[0]))->failure, "it ended without a summary");
}

TEST_F(RunFilesTest, KeepWhatOtherProcessesTookAndWhere) {
  const Planned planned(a_comparison());
  RunFiles files(dir_);
  planned.begin(files, "n1");
  train(files, planned.runs[0]);
  files.finish(planned.runs[0], {.others_cpu_share = 0.41});
  EXPECT_EQ(read_run(files.result(planned.runs[0]))->others_cpu_share, 0.41);
  EXPECT_TRUE(contains(content_of(files.result(planned.runs[0])), R"("host":"n1")"));
}

TEST_F(RunFilesTest, HaveTheUpdatesOfTheWarmUp) {
  CompareOptions options = a_comparison();
  options.shared = parse_shared_train_flags({"--learning-rate-scale=linear"});
  const Planned planned(options);
  RunFiles files(dir_);
  planned.begin(files);
  train(files, planned.runs[0]);
  files.finish(planned.runs[0], {});
  EXPECT_GT(planned.runs[0].warmup_updates, 0);
  EXPECT_EQ(read_run(files.result(planned.runs[0]))->warmup_updates,
            planned.runs[0].warmup_updates);
}

TEST_F(RunFilesTest, HaveTheLearningRatesOfTheVariants) {
  const auto written = [&](const char* word, const char* other = "parameter-server:sync+backup:1") {
    fs::remove_all(dir_);
    CompareOptions options = a_comparison();
    options.shared = parse_shared_train_flags({"--optimizer", "sgd"});
    options.variants = {parse_variant(word, 4, 2), parse_variant(other, 4, 2)};
    RunFiles files(dir_);
    Planned(options).begin(files);
    return read_comparison(dir_);
  };
  const Comparison scaled = written("mirrored");
  EXPECT_EQ(scaled.learning_rate_rule, "linear");
  EXPECT_EQ(scaled.variants[0].learning_rate, 0.01);
  EXPECT_EQ(scaled.variants[0].learning_rate_factor, 4.0);
  EXPECT_EQ(scaled.variants[1].learning_rate_factor, 3.0);
  EXPECT_EQ(scaled.variants[0].threads_per_worker, 1);
  const Comparison mixed = written("mirrored{learning-rate=0.2}");
  EXPECT_EQ(mixed.learning_rate_rule, "mixed") << "given and linear";
  EXPECT_EQ(mixed.variants[0].learning_rate_rule, "given");
  EXPECT_EQ(mixed.variants[0].learning_rate, 0.2);
  EXPECT_EQ(written("mirrored{learning-rate-scale=none}").learning_rate_rule, "mixed");
  EXPECT_EQ(
      written("mirrored{learning-rate=0.2}", "one-device{learning-rate=0.1}").learning_rate_rule,
      "given");
}

TEST_F(RunFilesTest, HaveACommandThatTrainsAVariantWithoutFaults) {
  CompareOptions options = a_comparison();
  options.shared = parse_shared_train_flags({"--optimizer", "sgd", "--nesterov"});
  options.cluster.faults = {.service_time = parse_service_time("constant:20", "--service-time"),
                            .slow = {{.worker = 3, .factor = 4.0}}};
  options.variants.push_back(parse_variant("parameter-server:ssp:3{learning-rate=0.2}", 4, 2));
  RunFiles files(dir_);
  Planned(options).begin(files);
  const auto kept = nlohmann::json::parse(content_of(dir_ / "comparison.json"));
  const auto command_of = [&](std::size_t variant) {
    const Words words = kept.at("variants").at(variant).at("command");
    EXPECT_EQ(words.front(), "syncopate");
    return parse_command_line(std::span(words).subspan(1), {});
  };
  const TrainOptions alone = std::get<TrainOptions>(command_of(0));
  EXPECT_EQ(alone.strategy.replicas, 4);
  EXPECT_EQ(alone.strategy.batch_size_per_replica, 10);
  EXPECT_EQ(alone.loop.total_epochs, options.epochs);
  EXPECT_EQ(alone.learning_rate_scale, LearningRateScale::kLinear);
  EXPECT_GT(alone.schedule.warmup_epochs, 0.0);
  EXPECT_EQ(alone.loop.service_time.kind, ServiceTimeKind::kNone);
  EXPECT_EQ(alone.loop.eval_every_steps, 0);
  EXPECT_EQ(alone.loop.eval_when, EvalWhen::kDue);
  const LaunchOptions launched = std::get<LaunchOptions>(command_of(2));
  EXPECT_EQ(launched.workers, 4);
  EXPECT_EQ(launched.servers, 2);
  EXPECT_EQ(word_after(launched.role_arguments, "--max-staleness"), "3");
  EXPECT_EQ(word_after(launched.role_arguments, "--learning-rate"), "0.2");
}

TEST_F(RunFilesTest, BelongToOneComparisonAtATime) {
  const auto first = std::make_unique<RunFiles>(dir_);
  EXPECT_THROW(RunFiles second(dir_), UsageError);
}

TEST_F(RunFilesTest, RefuseAnotherComparisonAndKeepIt) {
  const auto differs = [&](const std::string& words, const auto& change) {
    fs::remove_all(dir_);
    train_first(Planned(a_comparison()), 2, dir_);
    const std::string before = content_of(dir_ / "comparison.json");
    CompareOptions options = a_comparison();
    change(options);
    const std::string error = Planned(options).refusal(dir_);
    EXPECT_TRUE(contains(error, words)) << words << " was expected in: " << error;
    EXPECT_TRUE(contains(error, "has another comparison, 2 runs of 2 variants: ",
                         "choose another folder, or add --replace"));
    EXPECT_EQ(content_of(dir_ / "comparison.json"), before) << words;

    std::ofstream(dir_ / "report.html") << "the page";
    options.replace = true;
    const Planned other(options);
    EXPECT_EQ(other.refusal(dir_), "");
    EXPECT_TRUE(fs::is_empty(dir_ / "runs")) << words;
    EXPECT_FALSE(fs::exists(dir_ / "report.html"));
  };
  using Options = CompareOptions&;
  differs("the model is mnist-cnn, not mlp", [](Options o) { o.model = "mlp"; });
  differs("the data set is digits, not mnist", [](Options o) { o.data = "mnist"; });
  differs("the clock is real, not virtual", [](Options o) { o.clock = Clock::kVirtual; });
  differs("the budget is 2 epochs of digits, not 7 epochs", [](Options o) { o.epochs = 7; });
  differs("the target accuracy is 0.95, not 0.9", [](Options o) { o.target_accuracy = 0.9; });
  differs("the target accuracy is 0.95, not derived", [](Options o) { o.target_accuracy.reset(); });
  differs("the fault injection is none, not --kill worker=1,at=1s", [](Options o) {
    o.cluster.flags = {"--kill", "worker=1,at=1s"};
    o.cluster.faults.kills = {{.worker = 1, .at_seconds = 1.0}};
  });
  differs("the threads per worker is 1, not 2", [](Options o) {
    o.shared = parse_shared_train_flags({"--threads", "2"});
  });
  differs("mirrored was trained with program /here/syncopate, not /other",
          [](Options o) { o.program = "/other"; });
  differs("was trained with workers 4, not 5", [](Options o) { o.variants[1].workers = 5; });
  differs("was trained with servers 2, not 1", [](Options o) { o.variants[1].servers = 1; });
  differs("mirrored was trained without --deterministic",
          [](Options o) { o.shared = parse_shared_train_flags({"--deterministic"}); });
  differs("mirrored was trained with --learning-rate 0.001, not --learning-rate 0.1",
          [](Options o) {
            o.shared = parse_shared_train_flags({"--learning-rate", "0.1"});
          });
  differs("the batch is 10 samples per worker, not 20 samples per worker",
          [](Options o) { o.batch_size_per_replica = 20; });
  differs("this command leaves out mirrored with seed 1",
          [](Options o) { o.variants.erase(o.variants.begin()); });
  differs("this command leaves out mirrored with seed 1",
          [](Options o) { o.variants = {parse_variant("one-device", 4, 2)}; });
}

TEST_F(RunFilesTest, RefuseAnotherNetworkFileUnderTheSamePath) {
  fs::create_directories(dir_);
  const fs::path network = dir_ / "net.json";
  CompareOptions options = a_comparison();
  options.model = "file:" + network.string();
  std::ofstream(network) << "one";
  train_first(Planned(options), 1, dir_ / "runs");
  EXPECT_EQ(Planned(options).refusal(dir_ / "runs"), "");
  std::ofstream(network) << "another";
  EXPECT_TRUE(contains(Planned(options).refusal(dir_ / "runs"), "network file"));
}

// compare.sbatch describes its comparison without the network.
TEST_F(RunFilesTest, RefuseTheComparisonOfAJobScript) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / "comparison.json") << R"({"clock":"real","variants":[]})";
  EXPECT_TRUE(
      contains(Planned(a_comparison()).refusal(dir_), "the model is missing, not mnist-cnn"));
}

TEST_F(RunFilesTest, TakeMoreSeedsAndMoreVariants) {
  train_first(Planned(a_comparison()), 2, dir_);
  CompareOptions options = a_comparison();
  options.seeds = 3;
  options.variants.insert(options.variants.begin(), parse_variant("one-device", 4, 2));
  const Planned more(options);
  ASSERT_EQ(more.refusal(dir_), "");
  const Comparison found = read_comparison(dir_);
  ASSERT_EQ(found.variants.size(), 3U);
  EXPECT_EQ(found.variants[0].label, "one-device");
  EXPECT_TRUE(found.variants[1].runs.at(0).is_done());
  EXPECT_EQ(found.variants[1].runs.size(), 3U);
}

TEST_F(RunFilesTest, RefuseFewerSeedsThanTheyHave) {
  train_first(Planned(a_comparison()), 4, dir_);
  CompareOptions options = a_comparison();
  options.seeds = 1;
  EXPECT_TRUE(
      contains(Planned(options).refusal(dir_), "this command leaves out mirrored with seed 2"));
}

TEST_F(RunFilesTest, RefuseAnotherComparisonOfWhichOnlyTheDescriptionIsThere) {
  train_first(Planned(a_comparison()), 0, dir_);
  std::ofstream(dir_ / "report.html") << "the page";
  const std::string before = content_of(dir_ / "comparison.json");
  CompareOptions options = a_comparison();
  options.epochs = 7;
  const std::string error = Planned(options).refusal(dir_);
  EXPECT_TRUE(contains(error, "has another comparison, without runs: the budget is 2 epochs"));
  options = a_comparison();
  options.variants.pop_back();
  EXPECT_TRUE(
      contains(Planned(options).refusal(dir_),
               "without runs: this command leaves out parameter-server_sync_backup_1-seed1"));
  EXPECT_EQ(content_of(dir_ / "comparison.json"), before);

  EXPECT_EQ(Planned(a_comparison()).refusal(dir_), "") << "the comparison that is there";
  options.replace = true;
  EXPECT_EQ(Planned(options).refusal(dir_), "");
  EXPECT_FALSE(fs::exists(dir_ / "report.html"));
}

TEST_F(RunFilesTest, NameEveryMachineOfTheRuns) {
  const Planned planned(a_comparison());
  RunFiles files(dir_);
  const auto hosts_after = [&](const std::string& host) {
    planned.begin(files, host);
    std::vector<std::string> hosts;
    for (const Machine& machine : read_comparison(dir_).machines) hosts.push_back(machine.host);
    return hosts;
  };
  EXPECT_EQ(hosts_after("a"), Words{"a"});
  EXPECT_EQ(hosts_after("b"), Words{"b"}) << "nothing was made on a";
  train(files, planned.runs[0]);
  files.finish(planned.runs[0], {});
  EXPECT_EQ(hosts_after("b"), Words{"b"});
  EXPECT_EQ(hosts_after("c"), (Words{"b", "c"}));
  for (const RunSpec& run : planned.runs) {
    train(files, run);
    files.finish(run, {});
  }
  EXPECT_EQ(hosts_after("d"), (Words{"b", "c"})) << "no run is missing";
}

TEST_F(RunFilesTest, AreNumberedWithoutAFolderOfTheUser) {
  const Planned planned(a_comparison());
  const fs::path base = dir_ / "comparison";
  const fs::path second = dir_ / "comparison-2";
  EXPECT_EQ(numbered_folder(base, {{"", planned.heads}}), base);
  train_first(planned, 3, base);
  EXPECT_EQ(numbered_folder(base, {{"", planned.heads}}), base) << "one run is missing";

  CompareOptions options = a_comparison();
  options.epochs = 7;
  EXPECT_EQ(numbered_folder(base, {{"", Planned(options).heads}}), second) << "another comparison";
  options = a_comparison();
  options.seeds = 3;
  EXPECT_EQ(numbered_folder(base, {{"", Planned(options).heads}}), second) << "other runs";

  train_first(planned, 4, base);
  EXPECT_EQ(numbered_folder(base, {{"", planned.heads}}), second) << "the first is finished";
  fs::create_directories(second);
  std::ofstream(second / "thesis.tex") << "of the user";
  EXPECT_EQ(numbered_folder(base, {{"", planned.heads}}), dir_ / "comparison-3");
}

}  // namespace
}  // namespace syncopate::bench
