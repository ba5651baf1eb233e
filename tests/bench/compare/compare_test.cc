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
#include "tests/end_to_end/support/scratch_dir.h"
#include "tests/worker/input/picture_folder.h"

namespace syncopate::test {
namespace {

TEST(Compare, TrainsOneVariantOfEachKindAndWritesTheReport) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(scratch / "r", kSmall);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* label : {"one-device", "multi-worker-mirrored", "parameter-server:async",
                            "parameter-server:ssp:3", "parameter-server:sync+backup:1"}) {
    EXPECT_NE(read_text(scratch / "r" / "runs.csv").find(label), std::string::npos) << result.out;
  }
  EXPECT_EQ(last_line(result.out),
            "Figure and method: " + (scratch / "r" / "report.html").string());
  EXPECT_TRUE(fs::exists(scratch / "r" / "report.html"));
  EXPECT_EQ(result.err.find("failed"), std::string::npos) << result.err;
  cpu_set_t cpus;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
  const std::string all_cpus = "one-device{threads=" + std::to_string(CPU_COUNT(&cpus)) + "}";
  EXPECT_EQ(result.out.find(all_cpus) != std::string::npos, CPU_COUNT(&cpus) > 1) << result.out;
  const std::string kept = read_text(scratch / "r" / "comparison.json");
  const auto object = nlohmann::json::parse(kept);
  for (const char* key : {"machines", "chance", "claims", "rows"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  // One seed decides nothing; on a busy machine there is no answer either.
  const std::string form = object.at("answer").at("form");
  EXPECT_TRUE(form == "not decided" || form == "not reached" || form == "busy") << form;
  EXPECT_TRUE(object.at("answer").at("winners").empty());
  EXPECT_TRUE(std::ranges::any_of(object.at("facts"), [](const auto& fact) {
    return fact.at("subject") == "workers" &&
           fact.at("text").template get<std::string>().starts_with("2 workers of 1 thread ");
  })) << kept;
}

TEST(Compare, TrainsTheOtherStrategiesOnRequest) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r", kSmall + Words{"--strategies", "mirrored,central-storage,pipeline"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* label : {"mirrored", "central-storage", "pipeline"}) {
    EXPECT_NE(result.out.find(label), std::string::npos) << result.out;
  }
  EXPECT_EQ(result.err.find("failed"), std::string::npos) << result.err;
}

TEST(Compare, DoesNotRecommendAVariantThatDidNotLearn) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r", kSmall + Words{"--clock", "virtual", "--strategies", "one-device,mirrored",
                                    "--", "--learning-rate", "1e-9"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto kept = nlohmann::json::parse(read_text(scratch / "r" / "comparison.json"));
  EXPECT_TRUE(kept.at("answer").at("winners").empty()) << result.out;
  EXPECT_TRUE(std::ranges::any_of(kept.at("facts"), [](const auto& fact) {
    return fact.at("subject") == "guessing" && fact.at("is_warning") == true;
  })) << result.out;
}

TEST(Compare, ContinuesAfterAStrategyFailed) {
  const ScratchDir scratch;
  // Asynchronous training does not repeat its results, so train refuses --deterministic.
  const ProgramResult result = run_compare(
      scratch / "r",
      kSmall + Words{"--strategies", "central-storage:async,mirrored", "--", "--deterministic"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("--deterministic"), std::string::npos)
      << "why it failed: " << result.out;
  EXPECT_NE(read_text(scratch / "r" / "runs.csv").find("mirrored"), std::string::npos);
}

TEST(Compare, ContinuesWithTheMissingRunsAfterAnInterrupt) {
  const ScratchDir scratch;
  const fs::path runs = scratch / "r" / "runs";
  const Words command = compare(
      scratch / "r", Words{"--data", "synthetic:1x8x8:4:2048", "--service-time", "constant:20",
                           "--strategies", "mirrored,parameter-server:async"});
  {
    RunningProgram first(command);
    ASSERT_TRUE(first.wait_until_err_has("[1/2] mirrored"));
    first.send(SIGINT);
    const ProgramResult result = first.wait();
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("the same command continues with the missing runs"),
              std::string::npos)
        << result.err;
    EXPECT_EQ(result.out, "") << "nothing may read it after a request to stop";
    EXPECT_TRUE(fs::exists(scratch / "r" / "report.html"));
  }
  EXPECT_TRUE(fs::exists(runs / "mirrored-seed1.jsonl"));
  EXPECT_FALSE(fs::exists(runs / "parameter-server_async-seed1.jsonl"));
  const auto written = fs::last_write_time(runs / "mirrored-seed1.jsonl");
  const ProgramResult result = RunningProgram(command).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("1 of 2 runs are there already"), std::string::npos) << result.err;
  // A run that other programs disturbed is trained again when the machine is quiet.
  if (result.err.find("[again ") == std::string::npos) {
    EXPECT_EQ(fs::last_write_time(runs / "mirrored-seed1.jsonl"), written);
  }
  EXPECT_TRUE(fs::exists(runs / "parameter-server_async-seed1.jsonl"));
}

TEST(Compare, WritesTheSameFilesEachTimeUnderTheVirtualClock) {
  const ScratchDir scratch;
  for (const char* report : {"a", "b"}) {
    const ProgramResult result =
        run_compare(scratch / report, kSmall + Words{"--clock", "virtual"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const auto names = names_in(scratch / "a" / "runs");
  EXPECT_EQ(names.size(), 5U);
  EXPECT_EQ(names, names_in(scratch / "b" / "runs"));
  for (const std::string& name : names) {
    EXPECT_EQ(read_text(scratch / "a" / "runs" / name), read_text(scratch / "b" / "runs" / name))
        << name;
  }
}

TEST(Compare, StartsFromTheWeightsOfInitFromUnderTheVirtualClock) {
  const ScratchDir scratch;
  const Words network{"--model", "mlp", "--threads", "1", "--epochs", "1"};
  const ProgramResult before = run_syncopate(
      Words{"train", "--checkpoint-dir", scratch / "run", "--seed", "7"} + network + kSmall);
  ASSERT_EQ(before.exit_code, 0) << before.err;
  const Words init{"--init-from", scratch / "run" / names_in(scratch / "run").front()};
  const ProgramResult trained =
      run_syncopate(Words{"train", "--metrics", scratch / "m", "--batch-size-per-replica", "32"} +
                    network + kSmall + init);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const ProgramResult compared =
      run_compare(scratch / "r", kSmall +
                                     Words{"--clock", "virtual", "--strategies",
                                           "one-device,mirrored", "--", "--threads", "1"} +
                                     init);
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_NE(compared.err.find("first values"), std::string::npos) << compared.err;
  const auto virtual_summary = summary_of(scratch / "r" / "runs" / "one-device-seed1.jsonl");
  EXPECT_EQ(virtual_summary["weights_hash"], summary_of(scratch / "m")["weights_hash"]);
}

TEST(Compare, RefusesAMissingInitFromBeforeTheFirstRun) {
  const ScratchDir scratch;
  for (const char* clock : {"real", "virtual"}) {
    const ProgramResult result = run_compare(
        scratch / "r", kSmall + Words{"--clock", clock, "--", "--init-from", scratch / "absent"});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err.find((scratch / "absent").string()), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_FALSE(fs::exists(scratch / "r")) << clock;
  }
}

// The shared pictures have another size than those of the variant, which its runs open.
TEST(Compare, ChecksAVariantWithItsOwnDataInItsRuns) {
  const ScratchDir scratch;
  PictureFolder folder;
  folder.write_splits(21, 6);
  const Words data{"--data", folder.data_flag()};
  const Words sized = Words{"--model", "mlp", "--image-size", "12"} + data;
  const ProgramResult before =
      run_syncopate(Words{"train", "--checkpoint-dir", scratch / "run", "--steps", "1", "--threads",
                          "1", "--batch-size", "4"} +
                    sized);
  ASSERT_EQ(before.exit_code, 0) << before.err;
  ProgramResult network = run_syncopate(Words{"network", "--json"} + sized);
  ASSERT_EQ(network.exit_code, 0) << network.err;
  const std::string input = "\"op\": \"input\"";
  const std::size_t at = network.out.find(input);
  ASSERT_NE(at, std::string::npos) << network.out;
  network.out.insert(at + input.size(), ", \"shape\": [12, 12, 3]");
  std::ofstream(scratch / "net.json") << network.out;
  const Words train{"--threads", "1", "--cache-dir", scratch / "cache"};
  const Words init{"--init-from", scratch / "run" / names_in(scratch / "run").front()};
  for (const auto& [model, more] : {std::pair<std::string, Words>{"mlp", init},
                                    {"file:" + (scratch / "net.json").string(), {}}}) {
    const ProgramResult result =
        run_compare(scratch / ("r" + std::to_string(more.size())),
                    data +
                        Words{"--model", model, "--batch-size-per-replica", "4", "--strategies",
                              "one-device{image-size=12}", "--"} +
                        train + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST(Compare, NamesFlagsThatChangeNothingUnderTheVirtualClockInOneNote) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r",
      kSmall + Words{"--clock", "virtual", "--strategies", "one-device,parameter-server:async",
                     "--", "--transport", "tcp", "--peer-timeout", "9", "--bucket-mb", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("--transport, --bucket-mb, --peer-timeout change neither weights nor "
                            "times under the virtual clock"),
            std::string::npos)
      << result.err;
  // A flag that changes nothing fails no run, either.
  EXPECT_EQ(result.err.find("not applicable"), std::string::npos) << result.err;
}

TEST(Compare, ReportsInOneLineThatARunCannotBeWritten) {
  const ScratchDir scratch;
  // The first run cannot write its metrics lines, because a folder has the path of that file.
  fs::create_directories(scratch / "r" / "runs" / "mirrored-seed1.lines");
  const ProgramResult result = run_compare(
      scratch / "r", kSmall + Words{"--clock", "virtual", "--strategies", "one-device,mirrored"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.ended_by_signal, 0);
  EXPECT_NE(result.err.find("mirrored-seed1.lines"), std::string::npos) << result.err;
}

TEST(Compare, KillsAWorkerAndTheJobContinues) {
  const ScratchDir scratch;
  const ProgramResult result =
      run_compare(scratch / "r", Words{"--data", "synthetic:1x8x8:4:4096", "--service-time",
                                       "constant:20", "--strategies", "parameter-server:async",
                                       "--kill", "worker=1,at=200ms,restart=100ms"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string log = read_text(scratch / "r" / "runs" / "parameter-server_async-seed1.log");
  EXPECT_NE(log.find("worker 1 was ended by signal 9"), std::string::npos) << log;
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

TEST(Compare, CountsTheTimeThatAKillCostsASynchronousStrategy) {
  const ScratchDir scratch;
  // The run has 64 steps of at least 20 ms. A worker is killed at 0.5 s and restarts after 1 s.
  const ProgramResult result =
      run_compare(scratch / "r", Words{"--data", "synthetic:1x8x8:4:4096", "--service-time",
                                       "constant:20", "--strategies", "multi-worker-mirrored",
                                       "--kill", "worker=0,at=500ms,restart=1s"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string columns = read_text(scratch / "r" / "runs.csv");
  const std::vector<std::string> names = split(columns.substr(0, columns.find('\n')), ',');
  const auto at = std::ranges::find(names, "seconds") - names.begin();
  EXPECT_GT(seconds_in_csv(scratch / "r" / "runs.csv", "multi-worker-mirrored", at), 2.28)
      << columns;
}

TEST(Compare, AcceptsAJobThatFinishedWithoutAKilledWorker) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r", Words{"--data", "synthetic:1x8x8:4:4096", "--service-time", "constant:20",
                           "--strategies", "parameter-server:async,multi-worker-mirrored", "--kill",
                           "worker=1,at=0s", "--kill", "worker=0,at=1000s"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("parameter-server:async, seed 1: test accuracy"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("multi-worker-mirrored, seed 1: failed: [worker 0] syncopate: rank 1"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("the kill of worker 0 at 1000 s never took place"), std::string::npos)
      << result.out;
  const std::string output = in_one_line(result.out);
  EXPECT_NE(output.find("--kill worker=0,at=1000s came after 1 of 2 variants had reached"),
            std::string::npos)
      << result.out;
  EXPECT_EQ(output.find("--kill worker=1,at=0s came after"), std::string::npos) << result.out;
}

TEST(Compare, HasOneClockForARestartedWorker) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r", Words{"--data", "synthetic:1x8x8:4:8192", "--service-time", "constant:20",
                           "--strategies", "parameter-server:async", "--evaluations", "16",
                           "--kill", "worker=0,at=300ms,restart=100ms"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // Two workers train 256 batches; each batch takes 20 ms.
  std::istringstream curves(read_text(scratch / "r" / "curves.csv"));
  double last = 0.0;
  for (std::string line; std::getline(curves, line);) {
    const std::vector<std::string> fields = split(line, ',');
    if (fields.at(3) != "test") continue;
    EXPECT_GE(std::stod(fields.at(6)), last) << line;
    last = std::stod(fields.at(6));
  }
  EXPECT_GT(last, 2.5);
}

TEST(Compare, MarksRunsDuringWhichOtherProcessesTookTheCpus) {
  const ScratchDir scratch;
  std::vector<std::unique_ptr<RunningProgram>> others;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    others.push_back(std::make_unique<RunningProgram>(Words{"/bin/sh", "-c", "while :; do :; done"},
                                                      std::chrono::seconds(120)));
  }
  const ProgramResult busy =
      run_compare(scratch / "r", Words{"--data", "synthetic:1x8x8:4:2048", "--service-time",
                                       "constant:20", "--strategies", "mirrored"});
  ASSERT_EQ(busy.exit_code, 0) << busy.err;
  EXPECT_NE(busy.err.find(" samples/s (busy machine: others took "), std::string::npos) << busy.err;
  EXPECT_NE(busy.err.find("the machine was busy during 1 run and still is"), std::string::npos)
      << busy.err;
  const std::string lines = read_text(scratch / "r" / "runs" / "mirrored-seed1.jsonl");
  EXPECT_NE(lines.find("\"others_cpu_share\":0."), std::string::npos) << lines;
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

TEST(Compare, TrainsAgainWhatABusyMachineDisturbed) {
  const ScratchDir scratch;
  const fs::path stat = scratch / "stat";
  const fs::path result = scratch / "r" / "runs" / "mirrored-seed1.jsonl";
  const MadeUpStat made_up(stat, result);
  const Words in_namespace{"/usr/bin/unshare",
                           "-rm",
                           "/bin/sh",
                           "-c",
                           R"(mount --bind "$1" /proc/stat && shift && exec "$@")",
                           "sh",
                           stat};
  if (RunningProgram(in_namespace + Words{"true"}).wait().exit_code != 0) {
    GTEST_SKIP() << "needs permission to mount a file in a namespace of its own";
  }
  const ProgramResult ended =
      RunningProgram(
          in_namespace +
          compare(scratch / "r", Words{"--data", "synthetic:1x8x8:4:2048", "--service-time",
                                       "constant:20", "--strategies", "mirrored", "--seeds", "2"}))
          .wait();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.err.find("samples/s (busy machine: others took "), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("the machine was busy during 1 run; training again"), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("[again 1/1] mirrored, seed 1: test accuracy"), std::string::npos)
      << ended.err;
  EXPECT_NE(read_text(result).find("\"others_cpu_share\":0.0}"), std::string::npos)
      << read_text(result);
}

TEST(Compare, TriesFailedRunsAgain) {
  const ScratchDir scratch;
  const Words command = compare(
      scratch / "r",
      kSmall + Words{"--strategies", "central-storage:async,mirrored", "--", "--deterministic"});
  ASSERT_EQ(RunningProgram(command).wait().exit_code, 0);
  const ProgramResult again = RunningProgram(command).wait();
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("1 run failed before and will be tried again"), std::string::npos)
      << again.err;
  EXPECT_NE(again.err.find("[2/2] central-storage:async, seed 1: failed"), std::string::npos)
      << again.err;
}

TEST(Compare, TrainsTheBitsOfAPipelineUnderBothClocks) {
  const ScratchDir scratch;
  std::vector<std::string> hashes;
  for (const char* clock : {"real", "virtual"}) {
    const ProgramResult result = run_compare(
        scratch / clock,
        kSmall + Words{"--strategies", "pipeline:3", "--clock", clock, "--link-delay", "1ms"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err.find("failed"), std::string::npos) << result.err;
    const std::string lines = read_text(scratch / clock / "runs" / "pipeline_3-seed1.jsonl");
    const std::size_t begin = lines.find("\"weights_hash\":");
    ASSERT_NE(begin, std::string::npos) << lines;
    hashes.push_back(lines.substr(begin, lines.find(',', begin) - begin));
    // Of three micro-batches in two stages one waits for the way there and back, and the reports at
    // the end of the step for two messages.
    EXPECT_NE(lines.find("\"predicted_communication_seconds\":0.00"), std::string::npos);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(Compare, SlowsTheLinksOfStrategiesWithLinks) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r",
      kSmall + Words{"--strategies", "mirrored,multi-worker-mirrored,parameter-server:async",
                     "--link-delay", "2ms", "--link-rate", "1gbit"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("failed"), std::string::npos) << result.err;
  const auto log_of = [&](const std::string& run) {
    return read_text(scratch / "r" / "runs" / (run + "-seed1.log"));
  };
  const std::string slowed = "links slowed on purpose: 2 ms one way, 125 MB/s each way";
  for (const char* run : {"multi-worker-mirrored", "parameter-server_async"}) {
    EXPECT_NE(log_of(run).find(slowed), std::string::npos) << log_of(run);
  }
  EXPECT_EQ(log_of("mirrored").find(slowed), std::string::npos);
  EXPECT_NE(in_one_line(result.out).find("--link-delay 2ms --link-rate 1gbit"), std::string::npos)
      << result.out;
  EXPECT_NE(read_text(scratch / "r" / "report.html").find("predicted from the link"),
            std::string::npos);
  // The predicted communication of a step is 2 ms of link delay for the gradient, 2 ms for the
  // values, and the short time that their bytes take.
  const std::string lines =
      read_text(scratch / "r" / "runs" / "parameter-server_async-seed1.jsonl");
  EXPECT_NE(lines.find("\"predicted_communication_seconds\":0.004"), std::string::npos)
      << lines.substr(0, 400);
}

TEST(Compare, StartsAWorkerLaterIfTheStrategyAllowsIt) {
  const ScratchDir scratch;
  const ProgramResult result = run_compare(
      scratch / "r", Words{"--data", "synthetic:1x8x8:4:4096", "--service-time", "constant:20",
                           "--strategies", "mirrored,parameter-server:sync,parameter-server:async",
                           "--join", "worker=1,at=500ms"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* run : {"mirrored", "parameter-server_sync"}) {
    const std::string log = read_text(scratch / "r" / "runs" / (run + std::string("-seed1.log")));
    EXPECT_NE(log.find("has a fixed number of workers"), std::string::npos) << log;
  }
  EXPECT_NE(result.out.find("failed, seed 1: syncopate: --join worker=1,at=0.5s"),
            std::string::npos)
      << "why it failed: " << result.out;
  const std::string lines =
      read_text(scratch / "r" / "runs" / "parameter-server_async-seed1.jsonl");
  EXPECT_NE(lines.find("\"event\":\"worker\",\"worker\":1"), std::string::npos) << lines;
}

TEST(Compare, ReplaysWhatARealJobRecorded) {
  const ScratchDir scratch;
  const Words launch = split(
      "launch --workers 3 --servers 2 -- train --strategy parameter-server --model mlp "
      "--batch-size-per-replica 16 --epochs 2 --threads 1 --no-progress --record",
      ' ');
  const ProgramResult trained = run_syncopate(launch + Words{scratch / "order"} + kSmall);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::size_t at = trained.out.find("weights hash");
  ASSERT_NE(at, std::string::npos) << trained.out;
  const std::string hash = trained.out.substr(at, trained.out.find('\n', at) - at);
  const ProgramResult replayed =
      RunningProgram(Words{SYNCOPATE_BENCH, "compare", "--replay", scratch / "order"} + kSmall)
          .wait();
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  EXPECT_NE(replayed.out.find(hash), std::string::npos) << hash << " was expected, found\n"
                                                        << replayed.out;
  const ProgramResult none =
      RunningProgram(Words{SYNCOPATE_BENCH, "compare", "--replay", scratch / "other"} + kSmall)
          .wait();
  EXPECT_EQ(none.exit_code, 2) << none.err;
  EXPECT_NE(none.err.find("other.shard0"), std::string::npos) << none.err;
}

TEST(Compare, LeavesOutADefaultThatNeedsSeveralWorkers) {
  const ScratchDir scratch;
  const ProgramResult result =
      run_compare(scratch / "r", kSmall + Words{"--clock", "virtual", "--workers", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("left out: parameter-server:sync+backup:1"), std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("parameter-server:ssp:3"), std::string::npos) << result.out;
}

TEST(Compare, KeepsTheCommandWithShellQuotes) {
  const ScratchDir scratch;
  const fs::path folder = scratch / "a folder";
  const Words command = compare(
      folder, kSmall + Words{"--clock", "virtual", "--seeds", "1", "--strategies", "one-device"});
  ASSERT_EQ(RunningProgram(command).wait().exit_code, 0);
  EXPECT_NE(read_text(folder / "comparison.json").find("--report '" + folder.string() + "'"),
            std::string::npos);
}

}  // namespace
}  // namespace syncopate::test
