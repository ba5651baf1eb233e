// Tests what `syncopate-bench` refuses and suggests, and its help.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "tests/bench/compare/compare_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

TEST_F(Compare, RefusesMistakesWithOneLine) {
  const std::pair<Words, const char*> mistakes[] = {
      {{"--strategies", "mirorred"}, "no such strategy"},
      {{"--model", "resnet18"}, "no such name; did you mean 'resnet20'?"},
      {{"--json", "x"}, "did you mean '--report DIR'?"},
      {{"--preset", "momentun"}, "momentum"},
      {{"--clock", "sand"}, "--clock"},
      {{"--strategies", "parameter-server:sync+backup:2"}, "give --workers 3 or more"},
      {{"--updates", "3"}, "--budget updates"},
      {{"--budget", "seconds"}, "--seconds S"},
      {{"--link-delay", "1parsec"}, "such as 1ms"},
      {{"--kill", "worker=1"}, "worker=W,at=TIME"},
      {{"--kill", "worker=2,at=1s"}, "expected a worker from 0 to 1"},
      {{"--slow", "worker=2,factor=4"}, "expected a worker from 0 to 1"},
      {{"--slow", "worker=1,factor=0"}, "F from 0.001"},
      {{"--kill", "worker=1,at=1e30s"}, "from 0 to 1000000 seconds"},
      {{"--clock", "virtual", "--service-time", "constant:0"}, "all steps would end at time 0"},
      {{"--clock", "virtual", "--costs", "step=1ms,memory=1gb"}, "expected step=TIME, update=RATE"},
      {{"--clock", "virtual", "--costs", "step=1parsec"}, "--costs step 1parsec"},
      {{"--costs", "step=1ms"}, "choose --clock virtual"},
      {{"--service-time", "file:/no/such/file"}, "/no/such/file: cannot read the file"},
      {{"--kill", "worker=1,at=1s", "--kill", "worker=0,at=1s,restart=1s"}, "the same restart="},
      {{"--preset", "momentum", "--strategies", "mirrored"}, "--strategies"},
      {{"--strategies", "mirrored{momentun=0.1,nesterov}"}, "did you mean momentum?"},
      {{"--strategies", "mirrored{learning-rate=x}"}, "mirrored{learning-rate=x}: --learning-rate"},
      {{"--", "--data", "digits"}, "--data after --"},
      {{"--", "--steps=5"}, "--budget updates --updates N"},
      {{"--data", "mnist:/nowhere"}, "/nowhere"},
      {{"--epochs", "0"}, "--epochs 0: expected a whole number, at least 1"},
      {as_words("--updates 0 --budget updates"),
       "--updates 0: expected a whole number, at least 1"},
      {as_words("--seconds 0 --budget seconds"), "--seconds 0: expected"},
      {{"--evaluations", "0"}, "--evaluations 0: expected a whole number from 1"},
      {{"--seeds", "0"}, "--seeds 0: expected a whole number from 1"},
      {as_words("--budget updates --updates 5 --batch-size-per-replica 512 --strategies mirrored"),
       "mirrored: 512 samples are fewer than the 1024 of one of its updates; give a smaller"},
      {{"--target-accuracy", "95"}, "expected a number from 0 to 1; did you mean 0.95?"},
      {{"mirrored"}, "unexpected argument mirrored; put -- before mirrored"},
      {{"--strategies", "one-device,pipeline:6", "--workers", "3"},
       "pipeline:6 with --workers 3: network mlp cannot be cut into 3 stages with parameters; it "
       "gives at most 2"},
      {{"--strategies", "pipeline", "--", "--cut", "nope"}, "--cut nope: network mlp cannot"},
      {{"--strategies", "pipeline", "--service-time", "constant:5"}, "--clock virtual"},
      {{"--optimizer", "sgd"}, "flags of train stand behind --"},
      {as_words("--image-size 32 --seeds 2 -- --threads 1"),
       "--seeds 2 -- --threads 1 --image-size 32"},
      {{"--steps", "5"}, "unknown flag --steps: compare sets it for each run; give --budget"},
      {{"--", "--tensorboard", "d"},
       "--tensorboard after --: compare does not take it; every run would write to it; leave it"},
      {{"--clock", "virtual", "--", "--trace=t"}, "or train a single run with syncopate train"},
      {{"--clock", "virtual", "--", "--devices", "cuda"}, "compare with --clock real"},
      {{"--clock", "virtual", "--strategies", "mirrored{ema=0.9}"}, "--ema 0.9: not available"},
      {{"--strategies", "pipeline", "--", "--stages", "3"}, "give --workers before the --"},
      {{"--clock", "virtual", "--", "--lr-factor", "0.5"}, "--lr-factor 0.5: not applicable"},
      {{"--program", "/nowhere/syncopate"}, "/nowhere/syncopate"}};
  for (const auto& [words, expected] : mistakes) {
    expect_failure_in_one_line(run(kSmall + words), 2, {expected});
  }
}

TEST_F(Compare, ReplaysWithFlagsOfTheDataAlone) {
  const std::pair<Words, const char*> mistakes[] = {
      {{"--", "--learning-rate", "5"}, "--learning-rate after --: --replay computes what the job"},
      {{"--", "--init-from", "absent"}, "--init-from after --: --replay computes"},
      {{"--seeds", "3"}, "--seeds: --replay computes"},
      {{"--clock", "virtual"}, "--clock: --replay computes"},
      {{"--", "--cache-mb", "64"}, "order.shard0; give the FILE"}};
  for (const auto& [words, expected] : mistakes) {
    expect_failure(run_program(Words{SYNCOPATE_BENCH, "compare", "--replay", scratch_ / "order"} +
                               kSmall + words),
                   2, {expected});
  }
}

TEST(BenchProgram, SuggestsTheCommandThatWasMeant) {
  const ProgramResult result = run_program({SYNCOPATE_BENCH, "comapre"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(
      result.err.rfind("syncopate-bench: unknown command comapre; did you mean 'compare'?", 0), 0U)
      << result.err;
}

// A sanitizer takes more addresses than these limits leave.
#ifndef SYNCOPATE_SANITIZED
TEST(BenchProgram, NamesTheLimitOnMemoryThatItLacks) {
  const TemporaryFolder scratch;
  for (const char* limit : {"ulimit -v 90000", "ulimit -d 20000"}) {
    const Words limited{"/bin/sh", "-c", std::string(limit) + R"(; exec "$@")", "sh"};
    const ProgramResult result =
        run_program(limited + compare(scratch / "r", kSmall + Words{"--clock", "virtual"}));
    EXPECT_NE(result.exit_code, 0) << limit;
    EXPECT_LE(result.exit_code, 2) << limit << ": " << result.err;
    EXPECT_TRUE(contains(result.err, "ulimit")) << limit << ": " << result.err;
  }
}
#endif

TEST(BenchProgram, HelpHasLinesOfAtMost100Columns) {
  for (const char* command :
       {"", "compare", "report", "plan", "step", "input", "all-reduce", "ps", "scaling"}) {
    Words words{SYNCOPATE_BENCH, command, "--help"};
    std::erase(words, "");
    const ProgramResult result = successful(run_program(words));
    for (const std::string& line : split(result.out, '\n')) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST_F(Compare, RefusesWhatWouldChangeTheMeaningOfAPreset) {
  const std::pair<Words, const char*> mistakes[] = {
      {{"--data", "mnist:/nowhere"}, "/nowhere"},
      {{"--workers", "4"}, "or give in place of --preset: --workers 8 --servers 1 --model mlp"},
      {{"--", "--learning-rate", "1"},
       "--learning-rate after --: --preset momentum sets --learning-rate-scale, --optimizer, "
       "--momentum and --learning-rate; leave"},
      {{"--", "--learning-rate-scale=none"}, "--learning-rate-scale after --"}};
  for (const auto& [words, expected] : mistakes) {
    const TemporaryFolder scratch;
    const Words command = as_words(
        SYNCOPATE_BENCH, "compare --preset momentum --clock virtual --report", scratch / "r");
    expect_failure(run_program(command + words), 2, {expected});
  }
}

TEST_F(Compare, NamesTheFlagsOfAPresetWhereItRefusesOneOfThem) {
  const Words owned = as_words(
      "--strategies --clusters --workers --servers --batch-size-per-replica --budget --updates "
      "--seconds");
  const std::map<std::string, Words> values = {{"--strategies", {"mirrored"}},
                                               {"--clusters", {"equal"}},
                                               {"--budget", {"updates", "--updates", "5"}},
                                               {"--updates", {"5", "--budget", "updates"}},
                                               {"--seconds", {"5", "--budget", "seconds"}}};
  for (const std::string& flag : owned) {
    const auto value = values.find(flag);
    const Words words = value == values.end() ? Words{"4"} : value->second;
    const ProgramResult result = run_program(
        as_words(SYNCOPATE_BENCH, "compare --preset staleness --model mlp", flag) + words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& other : owned) EXPECT_TRUE(contains(result.err, other));
    EXPECT_TRUE(contains(result.err, "may be given --model, --data, --epochs, --seeds"));
  }
}

TEST_F(Compare, TrainsAnotherNetworkInAPreset) {
  const ProgramResult network =
      successful(run_syncopate(as_words("network --json --model mlp --head dense:16") + kSmall));
  std::ofstream(scratch_ / "net.json") << network.out;
  const std::string model = "file:" + (scratch_ / "net.json").string();
  const ProgramResult result = successful(run_program(
      as_words(SYNCOPATE_BENCH, "compare --preset one-slow --model", model,
               "--clock virtual --seeds 1 --epochs 1 --no-progress --first-seed 2 "
               "--evaluations 2 --target-accuracy 0.5 --service-time constant:2 --report",
               dir_) +
      kSmall));
  EXPECT_TRUE(contains(result.err, "--preset one-slow: its learning rates were chosen for mlp",
                       "give in place of --preset, with other rates: --workers 8 --servers 1 "
                       "--model " +
                           model));
  EXPECT_TRUE(contains(read_text(dir_ / "comparison.json"), model));
}

TEST(Plan, RefusesFlagsInBracesIfItTrainsNothing) {
  const ProgramResult result = run_program(
      as_words(SYNCOPATE_BENCH, "plan --strategies one-device,mirrored{momentum=0.9,nesterov}"));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(contains(result.err,
                       "--strategies mirrored{momentum=0.9,nesterov}: flags of train in braces "
                       "require --time-to-target"));
}

TEST(Plan, RefusesFlagsOfTrainWithItsOwnCure) {
  const std::pair<Words, const char*> mistakes[] = {
      {{"--", "--seed", "5"}, "--seed after --: plan has this flag itself; give it before the --"},
      {{"--steps", "5"}, "unknown flag --steps: plan trains its rows once, to --target-accuracy"},
      {{"--epochs", "3"}, "--epochs 3 requires --time-to-target, or a variant with {local-from="},
      {{"--time-to-target", "--", "--world-size", "2"},
       "plan has rows for each number of --workers"},
      {{"--time-to-target", "--", "--staleness-rule", "dc"}, "parameter-server:async+inverse"},
      {{"--time-to-target", "--strategies", "mirrored{trace=t}"}, "--trace: plan trains its rows"},
      // The predicted times would not have them.
      {{"--time-to-target", "--", "--compress", "bf16"}, "--compress bf16: plan predicts"},
      {{"--time-to-target", "--strategies", "parameter-server:async{partition=fixed:2}"},
       "--partition fixed:2: plan predicts"},
      {{"--time-to-target", "--strategies", "mirrored{head=dense:8}"}, "give --head after --"}};
  for (const auto& [words, expected] : mistakes) {
    expect_failure(run_program(Words{SYNCOPATE_BENCH, "plan", "--model", "mlp"} + kSmall + words),
                   2, {expected});
  }
}

TEST(Plan, RefusesASlowWorkerThatNoRowHas) {
  const ProgramResult result =
      run_program(as_words(SYNCOPATE_BENCH, "plan --workers 2 --slow worker=99,factor=4"));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(contains(
      result.err, "--slow worker=99,factor=4: expected a worker from 0 to 1, or more --workers"));
}

}  // namespace
}  // namespace syncopate::test
