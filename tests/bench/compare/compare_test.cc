// Tests `syncopate-bench compare` as a program: its processes, its files and its output.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/picture_folder.h"

namespace syncopate::test {
namespace {

TEST_F(Compare, TrainsOneVariantOfEachKindAndWritesTheReport) {
  const ProgramResult result = successful(run(kSmall));
  for (const char* label : {"one-device", "multi-worker-mirrored", "parameter-server:async",
                            "parameter-server:ssp:3", "parameter-server:sync+backup:1"}) {
    EXPECT_TRUE(contains(read_text(dir_ / "runs.csv"), label)) << result.out;
  }
  EXPECT_EQ(last_line(result.out), "Figure and method: " + (dir_ / "report.html").string());
  EXPECT_TRUE(fs::exists(dir_ / "report.html"));
  EXPECT_FALSE(contains(result.err, "failed"));
  cpu_set_t cpus;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
  const std::string all_cpus = "one-device{threads=" + std::to_string(CPU_COUNT(&cpus)) + "}";
  EXPECT_EQ(result.out.find(all_cpus) != std::string::npos, CPU_COUNT(&cpus) > 1) << result.out;
  const std::string kept = read_text(dir_ / "comparison.json");
  const auto object = nlohmann::json::parse(kept);
  for (const char* key : {"machines", "chance", "claims", "rows"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  // One seed decides nothing; on a busy machine there is no answer either.
  const std::string form = object.at("answer").at("form");
  EXPECT_TRUE(form == "not decided" || form == "not reached" || form == "busy") << form;
  EXPECT_TRUE(object.at("answer").at("winners").empty());
  EXPECT_TRUE(object.at("answer").at("best").is_null());
  EXPECT_TRUE(std::ranges::any_of(object.at("facts"), [](const auto& fact) {
    return fact.at("subject") == "workers" &&
           fact.at("text").template get<std::string>().starts_with("2 workers of 1 thread ");
  })) << kept;
}

TEST_F(Compare, TrainsTheOtherStrategiesOnRequest) {
  const ProgramResult result =
      successful(run(kSmall + Words{"--strategies", "mirrored,central-storage,pipeline"}));
  for (const char* label : {"mirrored", "central-storage", "pipeline"}) {
    EXPECT_TRUE(contains(result.out, label));
  }
  EXPECT_FALSE(contains(result.err, "failed"));
}

TEST_F(Compare, SaysWhetherAPaperWasRightHere) {
  successful(run_program(as_words(SYNCOPATE_BENCH,
                                  "compare --preset large-batch --clock virtual --epochs 1 --seeds "
                                  "5 --no-progress --data synthetic:1x8x8:4:2048 --report",
                                  dir_)));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  EXPECT_TRUE(std::ranges::any_of(kept.at("facts"), [](const auto& fact) {
    const std::string text = fact.at("text");
    return fact.at("subject") == "paper" && text.starts_with("Goyal et al. 2017: ") &&
           contains(text, "\"batch 256, warm-up\" ended with", "of 5 runs", "were not reproduced");
  })) << kept.at("facts");
  EXPECT_TRUE(contains(read_text(dir_ / "report.html"), "Goyal et al. 2017: "));
}

TEST_F(Compare, DoesNotRecommendAVariantThatDidNotLearn) {
  const ProgramResult result = successful(
      run(kSmall +
          as_words("--clock virtual --strategies one-device,mirrored -- --learning-rate 1e-9")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  EXPECT_TRUE(kept.at("answer").at("winners").empty()) << result.out;
  EXPECT_TRUE(std::ranges::any_of(kept.at("facts"), [](const auto& fact) {
    return fact.at("subject") == "guessing" && fact.at("is_warning") == true;
  })) << result.out;
}

TEST_F(Compare, ContinuesAfterAStrategyFailed) {
  // Asynchronous training does not repeat its results, so train refuses --deterministic.
  const ProgramResult result = successful(run(
      kSmall + Words{"--strategies", "central-storage:async,mirrored", "--", "--deterministic"}));
  EXPECT_TRUE(contains(result.out, "--deterministic")) << "why it failed: " << result.out;
  EXPECT_TRUE(contains(read_text(dir_ / "runs.csv"), "mirrored"));
}

TEST_F(Compare, ContinuesWithTheMissingRunsAfterAnInterrupt) {
  const fs::path runs = dir_ / "runs";
  const Words command =
      compare(dir_, as_words("--data synthetic:1x8x8:4:2048 --service-time constant:20 "
                             "--strategies mirrored,parameter-server:async"));
  {
    RunningProgram first(command);
    ASSERT_TRUE(first.wait_until_err_has("[1/2] mirrored"));
    first.send(SIGINT);
    const ProgramResult result = first.wait();
    expect_failure(result, 1, {"the same command continues with the missing runs"});
    EXPECT_EQ(result.out, "") << "nothing may read it after a request to stop";
    EXPECT_TRUE(fs::exists(dir_ / "report.html"));
  }
  EXPECT_TRUE(fs::exists(runs / "mirrored-seed1.jsonl"));
  EXPECT_FALSE(fs::exists(runs / "parameter-server_async-seed1.jsonl"));
  const auto written = fs::last_write_time(runs / "mirrored-seed1.jsonl");
  const ProgramResult result = successful(run_program(command));
  EXPECT_TRUE(contains(result.err, "1 of 2 runs are there already"));
  // A run that other programs disturbed is trained again when the machine is quiet.
  if (result.err.find("[again ") == std::string::npos) {
    EXPECT_EQ(fs::last_write_time(runs / "mirrored-seed1.jsonl"), written);
  }
  EXPECT_TRUE(fs::exists(runs / "parameter-server_async-seed1.jsonl"));
}

TEST_F(Compare, WritesTheSameFilesEachTimeUnderTheVirtualClock) {
  for (const char* report : {"a", "b"}) {
    successful(run_compare(scratch_ / report, kSmall + Words{"--clock", "virtual"}));
  }
  const auto names = names_in(scratch_ / "a" / "runs");
  EXPECT_EQ(names.size(), 5U);
  EXPECT_EQ(names, names_in(scratch_ / "b" / "runs"));
  for (const std::string& name : names) {
    EXPECT_EQ(read_text(scratch_ / "a" / "runs" / name), read_text(scratch_ / "b" / "runs" / name))
        << name;
  }
}

TEST_F(Compare, StartsFromTheWeightsOfInitFromUnderTheVirtualClock) {
  const Words network = as_words("--model mlp --threads 1 --epochs 1");
  successful(run_syncopate(Words{"train", "--checkpoint-dir", scratch_ / "run", "--seed", "7"} +
                           network + kSmall));
  const Words init{"--init-from", scratch_ / "run" / names_in(scratch_ / "run").front()};
  successful(
      run_syncopate(Words{"train", "--metrics", scratch_ / "m", "--batch-size-per-replica", "32"} +
                    network + kSmall + init));
  const ProgramResult compared = successful(run(
      kSmall + as_words("--clock virtual --strategies one-device,mirrored -- --threads 1") + init));
  EXPECT_TRUE(contains(compared.err, "first values"));
  const auto virtual_summary = summary_of(dir_ / "runs" / "one-device-seed1.jsonl");
  EXPECT_EQ(virtual_summary["weights_hash"], summary_of(scratch_ / "m")["weights_hash"]);
}

TEST_F(Compare, RefusesAMissingInitFromBeforeTheFirstRun) {
  for (const char* clock : {"real", "virtual"}) {
    const ProgramResult result =
        run(kSmall + Words{"--clock", clock, "--", "--init-from", scratch_ / "absent"});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_TRUE(contains(result.err, (scratch_ / "absent").string()));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_FALSE(fs::exists(dir_)) << clock;
  }
}

// The shared pictures have another size than those of the variant, which its runs open.
TEST_F(Compare, ChecksAVariantWithItsOwnDataInItsRuns) {
  PictureFolder folder;
  folder.write_splits(21, 6);
  const Words data{"--data", folder.data_flag()};
  const Words sized = Words{"--model", "mlp", "--image-size", "12"} + data;
  successful(run_syncopate(
      as_words("train --checkpoint-dir", scratch_ / "run", "--steps 1 --threads 1 --batch-size 4") +
      sized));
  ProgramResult network = run_syncopate(Words{"network", "--json"} + sized);
  ASSERT_EQ(network.exit_code, 0) << network.err;
  const std::string input = "\"op\": \"input\"";
  const std::size_t at = network.out.find(input);
  ASSERT_NE(at, std::string::npos) << network.out;
  network.out.insert(at + input.size(), ", \"shape\": [12, 12, 3]");
  std::ofstream(scratch_ / "net.json") << network.out;
  const Words train{"--threads", "1", "--cache-dir", scratch_ / "cache"};
  const Words init{"--init-from", scratch_ / "run" / names_in(scratch_ / "run").front()};
  for (const auto& [model, more] : {std::pair<std::string, Words>{"mlp", init},
                                    {"file:" + (scratch_ / "net.json").string(), {}}}) {
    successful(run_compare(
        scratch_ / ("r" + std::to_string(more.size())),
        data +
            as_words("--model", model,
                     "--batch-size-per-replica 4 --strategies one-device{image-size=12} --") +
            train + more));
  }
}

TEST_F(Compare, NamesFlagsThatChangeNothingUnderTheVirtualClockInOneNote) {
  const ProgramResult result = successful(
      run(kSmall + as_words("--clock virtual --strategies one-device,parameter-server:async -- "
                            "--transport tcp --peer-timeout 9 --bucket-mb 2")));
  EXPECT_TRUE(contains(result.err,
                       "--transport, --bucket-mb, --peer-timeout change neither weights nor "
                       "times under the virtual clock"));
  // A flag that changes nothing fails no run, either.
  EXPECT_FALSE(contains(result.err, "not applicable"));
}

TEST_F(Compare, ReportsInOneLineThatARunCannotBeWritten) {
  // The first run cannot write its metrics lines, because a folder has the path of that file.
  fs::create_directories(dir_ / "runs" / "mirrored-seed1.lines");
  const ProgramResult result =
      run(kSmall + Words{"--clock", "virtual", "--strategies", "one-device,mirrored"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.ended_by_signal, 0);
  EXPECT_TRUE(contains(result.err, "mirrored-seed1.lines"));
}

TEST_F(Compare, KillsAWorkerAndTheJobContinues) {
  successful(
      run(as_words("--data synthetic:1x8x8:4:4096 --service-time constant:20 --strategies "
                   "parameter-server:async --kill worker=1,at=200ms,restart=100ms")));
  const std::string log = read_text(dir_ / "runs" / "parameter-server_async-seed1.log");
  EXPECT_TRUE(contains(log, "worker 1 was ended by signal 9"));
}

// Returns the value in seconds of one column, from the first line of the CSV that begins with
// `begin`.
double seconds_in_csv(const fs::path& csv, const std::string& begin, int column) {
  std::istringstream lines(read_text(csv));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(begin)) continue;
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i <= column; ++i) std::getline(fields, field, ',');
    return std::stod(field);
  }
  return -1.0;
}

TEST_F(Compare, CountsTheTimeThatAKillCostsASynchronousStrategy) {
  // The run has 64 steps of at least 20 ms. A worker is killed at 0.5 s and restarts after 1 s.
  successful(
      run(as_words("--data synthetic:1x8x8:4:4096 --service-time constant:20 --strategies "
                   "multi-worker-mirrored --kill worker=0,at=500ms,restart=1s")));
  const std::string columns = read_text(dir_ / "runs.csv");
  const std::vector<std::string> names = split(columns.substr(0, columns.find('\n')), ',');
  const auto at = std::ranges::find(names, "seconds") - names.begin();
  EXPECT_GT(seconds_in_csv(dir_ / "runs.csv", "multi-worker-mirrored", at), 2.28) << columns;
}

TEST_F(Compare, AcceptsAJobThatFinishedWithoutAKilledWorker) {
  const ProgramResult result =
      successful(run(as_words("--data synthetic:1x8x8:4:4096 --service-time constant:20 "
                              "--strategies parameter-server:async,multi-worker-mirrored --kill "
                              "worker=1,at=0s --kill worker=0,at=1000s")));
  EXPECT_TRUE(contains(result.err, "parameter-server:async, seed 1: test accuracy",
                       "multi-worker-mirrored, seed 1: failed: [worker 0] syncopate: rank 1"));
  EXPECT_TRUE(contains(result.out, "the kill of worker 0 at 1000 s never took place"));
  const std::string output = in_one_line(result.out);
  EXPECT_TRUE(contains(output, "--kill worker=0,at=1000s came after 1 of 2 variants had reached"))
      << result.out;
  EXPECT_FALSE(contains(output, "--kill worker=1,at=0s came after")) << result.out;
}

TEST_F(Compare, HasOneClockForARestartedWorker) {
  successful(run(
      as_words("--data synthetic:1x8x8:4:8192 --service-time constant:20 --strategies "
               "parameter-server:async --evaluations 16 --kill worker=0,at=300ms,restart=100ms")));
  // Two workers train 256 batches; each batch takes 20 ms.
  std::istringstream curves(read_text(dir_ / "curves.csv"));
  double last = 0.0;
  for (std::string line; std::getline(curves, line);) {
    const std::vector<std::string> fields = split(line, ',');
    if (fields.at(3) != "test") continue;
    EXPECT_GE(std::stod(fields.at(6)), last) << line;
    last = std::stod(fields.at(6));
  }
  EXPECT_GT(last, 2.5);
}

TEST_F(Compare, MarksRunsDuringWhichOtherProcessesTookTheCpus) {
  std::vector<std::unique_ptr<RunningProgram>> others;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    others.push_back(std::make_unique<RunningProgram>(Words{"/bin/sh", "-c", "while :; do :; done"},
                                                      std::chrono::seconds(120)));
  }
  const ProgramResult busy = successful(run(
      as_words("--data synthetic:1x8x8:4:2048 --service-time constant:20 --strategies mirrored")));
  EXPECT_TRUE(contains(busy.err, " samples/s (busy machine: others took ",
                       "the machine was busy during 1 run and still is"));
  const std::string lines = read_text(dir_ / "runs" / "mirrored-seed1.jsonl");
  EXPECT_TRUE(contains(lines, "\"others_cpu_share\":0."));
}

// A made-up /proc/stat, which a program in a mount namespace of its own reads. Its time passes in
// steps of 10 s per CPU, of which other processes take 60 % until the file `quiet` exists.
class MadeUpStat {
 public:
  MadeUpStat(const fs::path& file, fs::path quiet)
      : file_(file), quiet_(std::move(quiet)), clock_([this](const std::stop_token& stop) {
          for (double busy = 0.0, idle = 0.0; !stop.stop_requested();) {
            const double share = fs::exists(quiet_) ? 0.0 : 0.6;
            busy += 1000.0 * share;
            idle += 1000.0 * (1.0 - share);
            write(busy, idle);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}

 private:
  // All texts have the same length, so that a reader never sees a cut one.
  void write(double busy, double idle) const {
    std::ostringstream text;
    text << std::fixed << std::setprecision(0);
    for (int cpu = 0; cpu < 256; ++cpu) {
      text << "cpu" << cpu << std::setw(12) << busy << " 0 0 " << std::setw(12) << idle
           << " 0 0 0 0 0 0\n";
    }
    std::fstream out(file_, fs::exists(file_) ? std::ios::in | std::ios::out : std::ios::out);
    out << text.str();
  }

  fs::path file_;
  fs::path quiet_;
  std::jthread clock_;
};

TEST_F(Compare, TrainsAgainWhatABusyMachineDisturbed) {
  const fs::path stat = scratch_ / "stat";
  const fs::path result = dir_ / "runs" / "mirrored-seed1.jsonl";
  const MadeUpStat made_up(stat, result);
  const Words in_namespace =
      as_words("/usr/bin/unshare -rm /bin/sh -c",
               std::string(R"(mount --bind "$1" /proc/stat && shift && exec "$@")"), "sh", stat);
  if (run_program(in_namespace + Words{"true"}).exit_code != 0) {
    GTEST_SKIP() << "needs permission to mount a file in a namespace of its own";
  }
  const ProgramResult ended = successful(run_program(
      in_namespace + compare(dir_, as_words("--data synthetic:1x8x8:4:2048 --service-time "
                                            "constant:20 --strategies mirrored --seeds 2"))));
  EXPECT_TRUE(contains(ended.err, "samples/s (busy machine: others took ",
                       "the machine was busy during 1 run; training again",
                       "[again 1/1] mirrored, seed 1: test accuracy"));
  EXPECT_TRUE(contains(read_text(result), "\"others_cpu_share\":0.0}"));
}

TEST_F(Compare, TriesFailedRunsAgain) {
  const Words command = compare(
      dir_,
      kSmall + Words{"--strategies", "central-storage:async,mirrored", "--", "--deterministic"});
  successful(run_program(command));
  const ProgramResult again = successful(run_program(command));
  EXPECT_TRUE(contains(again.err, "1 run failed before and will be tried again",
                       "[2/2] central-storage:async, seed 1: failed"));
}

TEST_F(Compare, TrainsTheBitsOfAPipelineUnderBothClocks) {
  std::vector<std::string> hashes;
  for (const char* clock : {"real", "virtual"}) {
    const ProgramResult result = successful(run_compare(
        scratch_ / clock,
        kSmall + as_words("--strategies pipeline:3 --clock", clock, "--link-delay 1ms")));
    EXPECT_FALSE(contains(result.err, "failed"));
    const std::string lines = read_text(scratch_ / clock / "runs" / "pipeline_3-seed1.jsonl");
    const std::size_t begin = lines.find("\"weights_hash\":");
    ASSERT_NE(begin, std::string::npos) << lines;
    hashes.push_back(lines.substr(begin, lines.find(',', begin) - begin));
    // Of three micro-batches in two stages one waits for the way there and back, and the reports at
    // the end of the step for two messages.
    EXPECT_TRUE(contains(lines, "\"predicted_communication_seconds\":0.00"));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST_F(Compare, SlowsTheLinksOfStrategiesWithLinks) {
  const ProgramResult result = successful(
      run(kSmall + as_words("--strategies mirrored,multi-worker-mirrored,parameter-server:async "
                            "--link-delay 2ms --link-rate 1gbit")));
  EXPECT_FALSE(contains(result.err, "failed"));
  const auto log_of = [&](const std::string& run) {
    return read_text(dir_ / "runs" / (run + "-seed1.log"));
  };
  const std::string slowed = "links slowed on purpose: 2 ms one way, 125 MB/s each way";
  for (const char* run : {"multi-worker-mirrored", "parameter-server_async"}) {
    EXPECT_TRUE(contains(log_of(run), slowed));
  }
  EXPECT_FALSE(contains(log_of("mirrored"), slowed));
  EXPECT_TRUE(contains(in_one_line(result.out), "--link-delay 2ms --link-rate 1gbit"))
      << result.out;
  EXPECT_TRUE(contains(read_text(dir_ / "report.html"), "predicted from the link"));
  // The predicted communication of a step is 2 ms of link delay for the gradient, 2 ms for the
  // values, and the short time that their bytes take.
  const std::string lines = read_text(dir_ / "runs" / "parameter-server_async-seed1.jsonl");
  EXPECT_TRUE(contains(lines, "\"predicted_communication_seconds\":0.004")) << lines.substr(0, 400);
}

TEST_F(Compare, StartsAWorkerLaterIfTheStrategyAllowsIt) {
  const ProgramResult result = successful(run(
      as_words("--data synthetic:1x8x8:4:4096 --service-time constant:20 --strategies "
               "mirrored,parameter-server:sync,parameter-server:async --join worker=1,at=500ms")));
  for (const char* run : {"mirrored", "parameter-server_sync"}) {
    const std::string log = read_text(dir_ / "runs" / (run + std::string("-seed1.log")));
    EXPECT_TRUE(contains(log, "has a fixed number of workers"));
  }
  EXPECT_TRUE(contains(result.out, "failed, seed 1: syncopate: --join worker=1,at=0.5s"))
      << "why it failed: " << result.out;
  const std::string lines = read_text(dir_ / "runs" / "parameter-server_async-seed1.jsonl");
  EXPECT_TRUE(contains(lines, "\"event\":\"worker\",\"worker\":1"));
}

TEST_F(Compare, ReplaysWhatARealJobRecorded) {
  const Words launch = split(
      "launch --workers 3 --servers 2 -- train --strategy parameter-server --model mlp "
      "--batch-size-per-replica 16 --epochs 2 --threads 1 --no-progress --record",
      ' ');
  const ProgramResult trained =
      successful(run_syncopate(launch + Words{scratch_ / "order"} + kSmall));
  const std::size_t at = trained.out.find("weights hash");
  ASSERT_NE(at, std::string::npos) << trained.out;
  const std::string hash = trained.out.substr(at, trained.out.find('\n', at) - at);
  const ProgramResult replayed = successful(
      run_program(Words{SYNCOPATE_BENCH, "compare", "--replay", scratch_ / "order"} + kSmall));
  EXPECT_TRUE(contains(replayed.out, hash)) << hash << " was expected, found\n" << replayed.out;
  expect_failure(
      run_program(Words{SYNCOPATE_BENCH, "compare", "--replay", scratch_ / "other"} + kSmall), 2,
      {"other.shard0"});
}

TEST_F(Compare, LeavesOutADefaultThatNeedsSeveralWorkers) {
  const ProgramResult result =
      successful(run(kSmall + Words{"--clock", "virtual", "--workers", "1"}));
  EXPECT_TRUE(contains(result.err, "left out: parameter-server:sync+backup:1"));
  EXPECT_TRUE(contains(result.out, "parameter-server:ssp:3"));
}

TEST_F(Compare, KeepsTheCommandWithShellQuotes) {
  const fs::path folder = scratch_ / "a folder";
  const Words command =
      compare(folder, kSmall + as_words("--clock virtual --seeds 1 --strategies one-device"));
  successful(run_program(command));
  EXPECT_TRUE(
      contains(read_text(folder / "comparison.json"), "--report '" + folder.string() + "'"));
}

}  // namespace
}  // namespace syncopate::test
