// Tests which job script `syncopate sbatch` chooses, which values it fills in, and which flags it
// refuses.
#include <gtest/gtest.h>

#include <optional>
#include <tuple>
#include <utility>

#include "deploy/cli/command_line.h"
#include "deploy/slurm/gpu_request.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/input/record/example.h"

namespace syncopate {
namespace {

SbatchOptions parse_sbatch(const Arguments& arguments) {
  return std::get<SbatchOptions>(parse_command_line(as_words("sbatch", arguments), {}));
}

std::string script_of(const Arguments& arguments) { return filled_script(parse_sbatch(arguments)); }

std::string error_of(const Arguments& arguments) {
  return message_if_thrown<Error>([&] { parse_sbatch(arguments); });
}

void expect_line(const std::string& script, const std::string& line) {
  EXPECT_TRUE(contains(script, "\n" + line + "\n")) << line << "\nin\n" << script;
}

TEST(SbatchCommand, TakesTheScriptThatTheStrategyNeeds) {
  EXPECT_EQ(parse_sbatch({"--strategy", "one-device"}).script, "one_node");
  EXPECT_EQ(parse_sbatch({"--strategy", "mirrored", "--", "--replicas", "4"}).script, "one_node");
  EXPECT_EQ(parse_sbatch({"--strategy", "multi-worker-mirrored"}).script, "multi_node");
  EXPECT_EQ(parse_sbatch({"--strategy", "parameter-server"}).script, "parameter_server_het");
  EXPECT_EQ(parse_sbatch({"--script", "compare"}).script, "compare");
  EXPECT_EQ(parse_sbatch({"--strategy", "pipeline", "--", "--stages", "2"}).script, "one_node");
  EXPECT_EQ(parse_sbatch({"--strategy", "pipeline", "--nodes", "3"}).script, "multi_node");
}

TEST(SbatchCommand, NamesTheStrategyOfAPipelineInItsTraining) {
  const std::string script = script_of(as_words("--strategy pipeline --nodes 2 -- --epochs 1"));
  expect_line(script, "TRAIN=(--strategy pipeline --epochs 1)");
  const std::string header = script.substr(0, script.find("#SBATCH"));
  EXPECT_FALSE(contains(header, "multi-worker-mirrored"));
  EXPECT_TRUE(contains(header, "with the strategy in TRAIN"));
}

TEST(SbatchCommand, FillsInTheSizeTheProgramAndTheFlagsOfTrain) {
  const std::string script = script_of({"--strategy",
                                        "multi-worker-mirrored",
                                        "--nodes",
                                        "4",
                                        "--tasks-per-node",
                                        "2",
                                        "--cpus-per-task",
                                        "16",
                                        "--time",
                                        "1-12:00:00",
                                        "--partition",
                                        "gpu",
                                        "--account",
                                        "lab",
                                        "--job-name",
                                        "mine",
                                        "--program",
                                        "/opt/my programs/syncopate",
                                        "--",
                                        "--data",
                                        "mnist:/data/mnist",
                                        "--epochs",
                                        "3"});
  for (const char* line :
       {"#SBATCH --nodes=4", "#SBATCH --ntasks-per-node=2", "#SBATCH --cpus-per-task=16",
        "#SBATCH --time=1-12:00:00", "#SBATCH --partition=gpu", "#SBATCH --account=lab",
        "#SBATCH --job-name=mine", "PROGRAM='/opt/my programs/syncopate'", "DATA=mnist:/data/mnist",
        "USE_CONTAINER=false", "TRAIN=(--strategy multi-worker-mirrored --epochs 3)"}) {
    expect_line(script, line);
  }
}

// A user who edits DATA in the script must not train on other data.
TEST(SbatchCommand, NamesTheDataInOnePlace) {
  for (const Arguments& where : {Arguments{"--strategy", "one-device"}, {"--script", "compare"}}) {
    for (const Arguments& data : {Arguments{"--data", "csv:a b.csv"}, {"--data=csv:a b.csv"}}) {
      const std::string script = script_of(as_words(where, "-- --epochs 3", data));
      expect_line(script, "DATA='csv:a b.csv'");
      EXPECT_TRUE(lacks(script, "--data csv", "--data=csv", "--data 'csv"));
    }
  }
  expect_line(script_of({"--strategy", "one-device"}), "DATA=digits");
}

TEST(SbatchCommand, LeavesOutFlagsThatWereNotGiven) {
  const std::string script = script_of({"--strategy", "multi-worker-mirrored"});
  expect_line(script, "##SBATCH --partition=PARTITION");
  expect_line(script, "#SBATCH --time=00:30:00");
  expect_line(script, "PROGRAM=syncopate");
}

TEST(SbatchCommand, GivesServersAComponentOfTheirOwn) {
  const std::string script =
      script_of(as_words("--strategy parameter-server --nodes 8 --servers 4 --server-nodes 2 "
                         "--partition gpu --server-partition cpu"));
  const std::size_t border = script.find("#SBATCH hetjob");
  ASSERT_NE(border, std::string::npos);
  const std::string servers = script.substr(0, border);
  const std::string workers = script.substr(border);
  expect_line(servers, "#SBATCH --nodes=2");
  expect_line(servers, "#SBATCH --ntasks-per-node=2");
  expect_line(servers, "#SBATCH --partition=cpu");
  expect_line(workers, "#SBATCH --nodes=8");
  expect_line(workers, "#SBATCH --ntasks-per-node=1");
  expect_line(workers, "#SBATCH --partition=gpu");
}

TEST(SbatchCommand, StartsWithMpirunWhatSumsOverMpi) {
  expect_line(script_of({"--strategy", "multi-worker-mirrored", "--", "--collective", "mpi"}),
              "LAUNCHER=mpirun");
}

TEST(SbatchCommand, TurnsTheContainerOn) {
  const std::string script = script_of({"--strategy", "one-device", "--container", "images/a.sif"});
  expect_line(script, "USE_CONTAINER=true");
  expect_line(script, "CONTAINER=images/a.sif");
  expect_line(script_of({"--strategy", "one-device", "--container", "a.sif", "--container-flags",
                         "--nv --bind /scratch"}),
              "CONTAINER_FLAGS=(--nv --bind /scratch)");
}

TEST(SbatchCommand, FillsInAComparisonAndABuild) {
  const std::string compare =
      script_of(as_words("--script compare --nodes 5 --servers 2 -- --model resnet20"));
  expect_line(compare, "#SBATCH --nodes=5");
  expect_line(compare, "SERVERS=2");
  expect_line(compare,
              "TRAIN=(--model mnist-cnn --batch-size-per-replica 32 --threads 1 --eval-every-steps "
              "100 --log-every 100 --model resnet20)");
  expect_line(script_of({"--script", "build", "--cpus-per-task", "32"}),
              "#SBATCH --cpus-per-task=32");
}

// The requests of the jobs in the guides of clusters: resources, mail.
TEST(SbatchCommand, FillsInResourcesAndOtherOptionsOfSbatch) {
  const std::string script = script_of(as_words(
      "--strategy multi-worker-mirrored --gres gpu:a100:4 --constraint h100&ib --mem 64G --qos "
      "long --sbatch-option mail-type=END,FAIL --sbatch-option --mail-user=a@lab.org "
      "--sbatch-option exclusive --sbatch-option output=logs/%j.out"));
  for (const char* line :
       {"#SBATCH --gres=gpu:a100:4", "#SBATCH --constraint=h100&ib", "#SBATCH --mem=64G",
        "#SBATCH --qos=long", "#SBATCH --mail-type=END,FAIL", "#SBATCH --mail-user=a@lab.org",
        "#SBATCH --exclusive", "#SBATCH --output=logs/%j.out", "##SBATCH --gpus-per-task=1"}) {
    expect_line(script, line);
  }
  EXPECT_FALSE(contains(script, "--output=%x"));
  EXPECT_LT(script.find("#SBATCH --exclusive"), script.find("set -euo")) << "Slurm reads no more";
}

TEST(SbatchCommand, RequestsResourcesForTheTasksThatTrain) {
  const std::string script =
      script_of(as_words("--strategy parameter-server --gpus-per-task 1 --qos long"));
  const std::size_t border = script.find("#SBATCH hetjob");
  EXPECT_FALSE(contains(script.substr(0, border), "\n#SBATCH --gpus"));
  expect_line(script.substr(0, border), "#SBATCH --qos=long");
  expect_line(script.substr(border), "#SBATCH --gpus-per-task=1");
  expect_line(script.substr(border), "#SBATCH --qos=long");
}

TEST(SbatchCommand, RequestsAGpuForEachReplicaOnGpus) {
  const auto with = [](const Arguments& flags, const Arguments& more = {}) {
    return script_of(as_words(flags, "-- --devices cuda", more));
  };
  expect_line(with({"--strategy", "multi-worker-mirrored"}), "#SBATCH --gres=gpu:1");
  expect_line(with({"--strategy", "multi-worker-mirrored", "--tasks-per-node", "4"}),
              "#SBATCH --gres=gpu:4");
  expect_line(with({"--strategy", "mirrored"}, {"--replicas", "4"}), "#SBATCH --gres=gpu:4");
  expect_line(script_of({"--strategy", "one-device", "--", "--devices", "cuda:1"}),
              "#SBATCH --gres=gpu:2");
  expect_line(script_of({"--strategy", "mirrored", "--", "--devices", "cuda:0,cuda:1"}),
              "#SBATCH --gres=gpu:2");
  const std::string eight = with({"--strategy", "mirrored", "--gpus-per-task", "a100:8"});
  for (const char* line :
       {"#SBATCH --gpus-per-task=a100:8", "#SBATCH --ntasks=1", "#SBATCH --cpus-per-task=8"}) {
    expect_line(eight, line);
  }
  expect_line(
      with(as_words(
          "--strategy multi-worker-mirrored --nodes 3 --tasks-per-node 4 --gpus-per-task 1")),
      "#SBATCH --ntasks=12");
  expect_line(with({"--strategy", "one-device", "--gres", "scratch:100"}),
              "#SBATCH --gres=scratch:100,gpu:1");
  EXPECT_TRUE(
      contains(error_of({"--script", "multi_node", "--", "--devices", "cuda"}), "requests no GPU"));
  EXPECT_EQ(error_of({"--strategy", "mirrored", "--", "--devices", "cuda"}),
            "--strategy mirrored requires a number of replicas behind --, such as -- --replicas 2, "
            "or GPUs in front of it, such as --gpus-per-task 2");
  for (const Arguments& request :
       {Arguments{"--gres", "gpu:2"}, Arguments{"--sbatch-option", "gpus-per-node=2"}}) {
    Arguments flags = as_words("--strategy multi-worker-mirrored", request);
    expect_line(with(flags), "##SBATCH --gpus-per-task=1");
    EXPECT_FALSE(contains(with(flags), "gpu:1"));
  }
}

TEST(SbatchCommand, RefusesOptionsThatAFlagOrTheScriptSets) {
  const auto error = [](const char* option) {
    return error_of({"--strategy", "one-device", "--sbatch-option", option});
  };
  EXPECT_EQ(error("nodes=2"), "--sbatch-option nodes=2: give --nodes");
  EXPECT_EQ(error("ntasks-per-node=2"), "--sbatch-option ntasks-per-node=2: give --tasks-per-node");
  EXPECT_EQ(error("gres=gpu:1"), "--sbatch-option gres=gpu:1: give --gres");
  EXPECT_EQ(
      error("signal=USR2"),
      "--sbatch-option signal=USR2: the script sets it, because the job returns to the queue; "
      "edit what --print prints");
  for (const char* bad : {"", "=x", "mail type=END", "mail-type=", "Mail=x"}) {
    EXPECT_TRUE(contains(error(bad), "expected NAME=VALUE"));
  }
  EXPECT_TRUE(contains(error("comment=a b"), "expected one word"));
  EXPECT_EQ(error_of({"--strategy", "one-device", "--gres", ""}),
            "--gres '': expected a value as sbatch takes it");
}

TEST(SbatchCommand, TrainsEachElementOfAnArrayWithItsOwnSeed) {
  const std::string script =
      script_of(as_words("--strategy one-device --array seed=0-9%4 -- --epochs 1"));
  expect_line(script, "#SBATCH --array=0-9%4");
  expect_line(script, "#SBATCH --output=%x-%A-%a.out");
  expect_line(script_of(as_words(
                  "--strategy one-device --array seed=1,3-5 --sbatch-option output=logs/%a.out")),
              "#SBATCH --output=logs/%a.out");
  EXPECT_FALSE(contains(script_of({"--strategy", "one-device"}), "#SBATCH --array"));
  for (const char* bad : {"0-9", "seed=", "seed=a", "seed=0-", "seed=-3", "rate=0-3"}) {
    EXPECT_TRUE(
        contains(error_of({"--strategy", "one-device", "--array", bad}), "expected seed=LIST"))
        << bad;
  }
  EXPECT_TRUE(contains(error_of({"--strategy", "one-device", "--sbatch-option", "array=0-9"}),
                       "give --array seed=0-9"))
      << "all elements would train with one seed";
  EXPECT_TRUE(contains(error_of({"--strategy", "parameter-server", "--array", "seed=1-3"}),
                       "Slurm has no arrays of jobs whose servers"));
  EXPECT_TRUE(
      contains(error_of({"--script", "compare", "--array", "seed=1-3"}), "requires --strategy"));
  EXPECT_TRUE(contains(error_of(as_words("--strategy one-device --array seed=1-3 -- --seed 4")),
                       "leave one out"));
}

TEST(SbatchCommand, RefusesFilesThatAllElementsOfAnArrayWouldWrite) {
  const auto error = [](const Arguments& of_train) {
    return error_of(as_words("--strategy one-device --array seed=1-3 --", of_train));
  };
  EXPECT_EQ(error({"--checkpoint-dir", "runs/a"}),
            "--checkpoint-dir runs/a with --array: all elements would write there; leave it out "
            "(checkpoints and metrics of each are in runs/NAME-JOB/seed-N), or submit one job per "
            "seed, with --seed N behind -- in place of --array");
  for (const char* flag : {"--checkpoint-dir", "--metrics", "--tensorboard", "--trace"}) {
    const std::string begin = std::string(flag) + " runs/a with --array";
    EXPECT_TRUE(error({flag, "runs/a"}).starts_with(begin)) << error({flag, "runs/a"});
    const std::string joined = std::string(flag) + "=runs/a";
    EXPECT_TRUE(error({joined}).starts_with(begin)) << error({joined});
  }
  EXPECT_EQ(error({"--init-from", "runs/a", "--cache-dir", "cache"}), "") << "these are read";
  EXPECT_EQ(error_of({"--strategy", "one-device", "--", "--checkpoint-dir", "runs/a"}), "");
}

TEST(SbatchCommand, KnowsThatItsScriptsWriteCheckpoints) {
  EXPECT_EQ(error_of(as_words("--strategy one-device -- --checkpoint-every 5 --keep-best")), "");
}

TEST(SbatchCommand, LeavesAJobEndedThatMustNotReturnToTheQueue) {
  for (const char* strategy : {"one-device", "multi-worker-mirrored", "parameter-server"}) {
    const SbatchOptions stays =
        parse_sbatch({"--strategy", strategy, "--sbatch-option", "no-requeue"});
    const std::string script = filled_script(stays);
    expect_line(script, "#SBATCH --no-requeue");
    EXPECT_FALSE(contains(script, "#SBATCH --requeue"));
    EXPECT_EQ(stays.notes.size(), 1U);
    const SbatchOptions returns =
        parse_sbatch({"--strategy", strategy, "--sbatch-option", "requeue"});
    expect_line(filled_script(returns), "#SBATCH --requeue");
    EXPECT_EQ(returns.notes.size(), 1U);
  }
}

TEST(SbatchCommand, AsksForNoEditsInAScriptThatItFilledIn) {
  for (const Arguments& which : {Arguments{"--strategy", "one-device"},
                                 {"--strategy", "multi-worker-mirrored"},
                                 {"--strategy", "parameter-server"},
                                 {"--script", "compare"},
                                 {"--script", "build"}}) {
    EXPECT_TRUE(lacks(script_of(which), "EDIT ", "marked EDIT"));
  }
}

TEST(SbatchCommand, StartsATaskForEachGpuOfANode) {
  const auto tasks = [](const Arguments& flags) {
    const SbatchOptions options =
        parse_sbatch(as_words("--strategy multi-worker-mirrored", flags, "-- --devices cuda"));
    return std::pair(options.tasks_per_node, options.notes.size());
  };
  using Result = std::pair<int, std::size_t>;
  EXPECT_EQ(tasks({"--nodes", "4", "--gres", "gpu:4"}), Result(4, 0));
  EXPECT_EQ(tasks({"--gres", "scratch:100,gpu:a100:8"}), Result(8, 0));
  EXPECT_EQ(tasks({"--gres", "gpu"}), Result(1, 0));
  EXPECT_EQ(tasks({"--sbatch-option", "gpus-per-node=h100:2"}), Result(2, 0));
  EXPECT_EQ(tasks({"--nodes", "2", "--sbatch-option", "gpus=8"}), Result(4, 0));
  EXPECT_EQ(tasks({"--sbatch-option", "gpus=8"}), Result(4, 0)) << "on the script's 2 nodes";
  EXPECT_EQ(tasks({"--tasks-per-node", "4", "--gpus-per-task", "1"}), Result(4, 0));
  EXPECT_EQ(tasks({"--tasks-per-node", "2", "--gres", "gpu:4"}), Result(2, 1));
  EXPECT_EQ(tasks({"--gpus-per-task", "4"}), Result(0, 1));
}

// Two tasks that each train on all GPUs of a node would share them.
TEST(SbatchCommand, DividesTheGpusOfANodeByThoseOfATask) {
  const auto tasks = [](const Arguments& flags, const Arguments& of_train) {
    Arguments words = as_words("--strategy multi-worker-mirrored", flags, "-- --devices", of_train);
    const SbatchOptions options = parse_sbatch(words);
    return std::tuple(options.tasks_per_node, options.gpus_per_task, options.notes.size());
  };
  using Result = std::tuple<int, int, std::size_t>;
  const Arguments four = {"--nodes", "2", "--gres", "gpu:4"};
  EXPECT_EQ(tasks(four, {"cuda", "--replicas", "4"}), Result(1, 4, 0));
  EXPECT_EQ(tasks(four, {"cuda", "--replicas", "2"}), Result(2, 2, 0));
  EXPECT_EQ(tasks(four, {"cuda", "--replicas", "3"}), Result(1, 3, 1));
  EXPECT_EQ(tasks(four, {"cuda", "--replicas", "8"}), Result(1, 4, 0));
  EXPECT_EQ(tasks(four, {"cuda:0,cuda:1,cuda:2,cuda:3", "--replicas", "4"}), Result(0, 4, 0));
  EXPECT_EQ(tasks(four, {"cuda:0,cuda:1,cuda:2,cuda:3"}), Result(0, 1, 1)) << "the first replica's";
  EXPECT_EQ(tasks(four, {"cuda:0"}), Result(0, 1, 1));
  EXPECT_EQ(tasks({"--tasks-per-node", "4", "--gpus-per-task", "1"}, {"cuda:0"}), Result(4, 1, 0));
}

TEST(SbatchCommand, ChecksTheFlagsOfTrainForTheTasksThatItStarts) {
  const Arguments cut = as_words("-- --model mlp --devices cuda --cut fc1");
  const auto error = [&](Arguments words) {
    words.insert(words.begin(), {"--strategy", "pipeline", "--nodes", "2", "--gres", "gpu:4"});
    words.insert(words.end(), cut.begin(), cut.end());
    return error_of(words);
  };
  EXPECT_TRUE(contains(error({}), "started 8 tasks"));
  EXPECT_EQ(error({"--tasks-per-node", "1"}), "");
  EXPECT_EQ(
      error_of(as_words("--strategy parameter-server -- --consistency sync --backup-workers 1")),
      "")
      << "the script has 2 nodes";
}

TEST(SbatchCommand, SaysWhichGpusStayIdle) {
  const auto note = [](const Arguments& words) {
    const SbatchOptions options = parse_sbatch(words);
    return options.notes.empty() ? "" : options.notes.front();
  };
  EXPECT_EQ(
      note(as_words(
          "--strategy multi-worker-mirrored --tasks-per-node 2 --gres gpu:4 -- --devices cuda")),
      "2 of the 4 GPUs of a node stay idle, because --strategy multi-worker-mirrored uses 2; "
      "give --tasks-per-node 4");
  EXPECT_EQ(note(as_words("--strategy multi-worker-mirrored --gpus-per-task 4 -- --devices cuda")),
            "3 of the 4 GPUs of a node stay idle, because --strategy multi-worker-mirrored uses 1; "
            "give --gpus-per-task 1 --tasks-per-node 4");
  EXPECT_EQ(note(as_words("--strategy one-device --gres gpu:2 -- --devices cuda")),
            "1 of the 2 GPUs of a node stay idle, because --strategy one-device uses 1; give "
            "--replicas 2 behind --, with --strategy mirrored or central-storage");
  EXPECT_EQ(note(as_words("--strategy mirrored --gres gpu:4 -- --devices cuda")), "");
  EXPECT_EQ(note(as_words("--strategy mirrored --gres gpu:2 -- --devices cuda:0,cuda:1")), "");
  EXPECT_EQ(
      note(as_words("--strategy mirrored --gres gpu:4 -- --devices cuda:0,cuda:1")),
      "2 of the 4 GPUs of a node stay idle, because --strategy mirrored uses 2; give --devices "
      "cuda --replicas 4 behind --, with --strategy mirrored or central-storage");
  EXPECT_EQ(note(as_words(
                "--strategy multi-worker-mirrored --gres gpu:4 -- --devices cuda --replicas 3")),
            "1 of the 4 GPUs of a node stay idle, because --strategy multi-worker-mirrored uses 3; "
            "give --tasks-per-node 4 and --replicas 1 behind --");
  EXPECT_EQ(
      note(as_words("--strategy multi-worker-mirrored --gres gpu:4 -- --devices cuda:0,cuda:1")),
      "3 of the 4 GPUs of a node stay idle, because --strategy multi-worker-mirrored uses 1; "
      "give --tasks-per-node 4 and --devices cuda behind --");
  EXPECT_EQ(note({"--strategy", "multi-worker-mirrored", "--gres", "gpu:4"}),
            "the job requests GPUs and trains on CPUs; give --devices cuda behind --");
}

TEST(SbatchCommand, CountsTheStagesOfAPipelineOnOneNode) {
  const auto options = [](const Arguments& of_train) {
    return parse_sbatch(
        as_words("--strategy pipeline --nodes 1 --gres gpu:4 -- --devices", of_train));
  };
  const auto note = [&](const Arguments& of_train) {
    const SbatchOptions found = options(of_train);
    return found.notes.empty() ? "" : found.notes.front();
  };
  EXPECT_EQ(note({"cuda", "--stages", "4"}), "");
  EXPECT_EQ(options({"cuda", "--stages", "4"}).gpus_per_task, 4);
  EXPECT_EQ(note({"cuda:0,cuda:1,cuda:2,cuda:3", "--stages", "4"}), "");
  EXPECT_EQ(
      note({"cuda", "--stages", "3"}),
      "1 of the 4 GPUs of a node stay idle, because --strategy pipeline uses 3; give --stages "
      "4 behind --");
  EXPECT_EQ(
      note({"cuda", "--model", "mlp", "--cut", "fc1"}),
      "2 of the 4 GPUs of a node stay idle, because --strategy pipeline uses 2; give --stages "
      "4 behind -- in place of --cut");
  expect_line(script_of(as_words("--strategy pipeline -- --devices cuda --stages 4")),
              "#SBATCH --gres=gpu:4");
}

TEST(SbatchCommand, RefusesWhatThisBuildCannotRead) {
  bool has_records = true;
  try {
    require_records("");
  } catch (const UnavailableError&) {
    has_records = false;
  }
  const std::string error = error_of({"--strategy", "one-device", "--", "--data", "tfds:cassava"});
  EXPECT_EQ(error.empty(), has_records) << error;
  EXPECT_EQ(error_of(as_words("--strategy one-device --container a.sif -- --data tfds:cassava")),
            "")
      << "another build";
}

constexpr const char* kNodes =
    "NodeName=a1 Arch=x86_64 CPUAlloc=0 CPUEfctv=62 CPUTot=64 CPULoad=0.1 "
    "Gres=gpu:a100:4(S:0-1),scratch:100 NodeAddr=a1 Partitions=gpu,long MCS_label=N/A\n"
    "NodeName=a2 CPUAlloc=0 CPUTot=128 Gres=gpu:a100:4 Partitions=gpu\n"
    "NodeName=h1 CPUEfctv=96 CPUTot=96 Gres=gpu:h100:2,gpu:h100:6 Partitions=big\n"
    "NodeName=c1 CPUEfctv=256 CPUTot=256 Gres=(null) Partitions=cpu,gpu\n";

TEST(CpusOfAGpu, AreItsShareOfTheNodeThatHasTheFewest) {
  EXPECT_EQ(cpus_per_gpu(kNodes, "gpu", "", 4), 15);
  EXPECT_EQ(cpus_per_gpu(kNodes, "gpu", "a100", 1), 15);
  EXPECT_EQ(cpus_per_gpu(kNodes, "", "h100", 8), 12);
  EXPECT_EQ(cpus_per_gpu(kNodes, "", "", 1), 12);
  EXPECT_EQ(cpus_per_gpu(kNodes, "cpu,long", "", 1), 15) << "a list, as sbatch takes it";
  EXPECT_EQ(cpus_per_gpu(kNodes, "gpu,big", "h100", 1), 12);
}

TEST(CpusOfAGpu, AreUnknownWhereNoNodeFits) {
  EXPECT_EQ(cpus_per_gpu(kNodes, "cpu", "", 1), std::nullopt);
  EXPECT_EQ(cpus_per_gpu(kNodes, "gpu", "h100", 1), std::nullopt);
  EXPECT_EQ(cpus_per_gpu(kNodes, "gpu", "", 5), std::nullopt);
  EXPECT_EQ(cpus_per_gpu("", "", "", 1), std::nullopt);
}

TEST(SbatchCommand, RefusesInOneLineWhatItWillNotSubmit) {
  EXPECT_EQ(error_of({}), "--strategy is missing; give --strategy NAME, or --script NAME");
  EXPECT_EQ(error_of({"--strategy", "mirrored", "--script", "one_node"}),
            "--script and --strategy: leave one of them out");
  EXPECT_EQ(error_of({"--strategy", "mirrored"}),
            "--strategy mirrored requires a number of replicas behind --, such as -- --replicas 2");
  EXPECT_EQ(error_of({"--strategy", "one-device", "--nodes", "2"}),
            "--strategy one-device is one process, but --nodes and --tasks-per-node request 2; "
            "choose --strategy multi-worker-mirrored or parameter-server");
  EXPECT_EQ(
      error_of(as_words("--strategy parameter-server --servers 3 --server-nodes 2")),
      "--servers 3: expected a multiple of --server-nodes 2, since all nodes run equally many "
      "servers");
  EXPECT_EQ(error_of({"--strategy", "multi-worker-mirrored", "--servers", "3"}),
            "--servers requires --strategy parameter-server");
  EXPECT_EQ(
      error_of({"--script", "compare", "--servers", "3"}),
      "--servers 3 of 3 tasks: no task is left to train; give more --nodes or --tasks-per-node");
  EXPECT_EQ(error_of({"--strategy", "one-device", "--container-flags", "--nv"}),
            "--container-flags requires --container");
  EXPECT_EQ(error_of({"--strategy", "multi-worker-mirrored", "--partition", "a b"}),
            "--partition 'a b': expected one word as sbatch takes it");
}

TEST(SbatchCommand, RefusesWhatTrainWouldRefuseOnceTheJobHasStarted) {
  EXPECT_TRUE(error_of({"--strategy", "multi-worker-mirrored", "--", "--model", "resnet21"})
                  .starts_with("--model resnet21: no such name; did you mean 'resnet20'?"));
  EXPECT_EQ(error_of(as_words(
                "--strategy multi-worker-mirrored -- --rank 0 --world-size 2 --rendezvous a:1")),
            "--rank, --world-size and --rendezvous: Slurm gives each task its own; leave them out");
  EXPECT_EQ(error_of({"--strategy", "one-device", "--", "--strategy", "mirrored"}),
            "--strategy mirrored behind --: give it in front, because it decides which script is "
            "submitted");
}

TEST(SbatchCommand, RequestsTheCpusOfReplicasAndThreads) {
  const auto cpus = [](const Arguments& train_flags) {
    const std::string script = script_of(as_words("--strategy mirrored --", train_flags));
    const std::string beginning = "\n#SBATCH --cpus-per-task=";
    const std::size_t number = script.find(beginning) + beginning.size();
    return script.substr(number, script.find('\n', number) - number);
  };
  EXPECT_EQ(cpus({"--replicas", "4"}), "4");
  EXPECT_EQ(cpus({"--replicas", "2", "--threads", "8"}), "16");
  EXPECT_EQ(cpus({"--replicas", "1"}), "2") << "the script's";
  EXPECT_EQ(cpus({"--replicas", "4", "--share-devices"}), "2");
}

TEST(SbatchCommand, RefusesFewerCpusThanReplicasUnlessAllowed) {
  EXPECT_EQ(error_of(as_words("--strategy mirrored --cpus-per-task 2 -- --replicas 4")),
            "--cpus-per-task 2 for --replicas 4: replicas that share a CPU wait for each other; "
            "give one to each, or --share-devices behind -- if that is meant");
  EXPECT_EQ(
      error_of(as_words("--strategy mirrored --cpus-per-task 2 -- --replicas 4 --devices cuda")),
      "")
      << "on GPUs CPUs only feed them";
  EXPECT_EQ(error_of(as_words("--strategy mirrored --cpus-per-task 4 -- --replicas 4")), "");
  EXPECT_EQ(
      error_of(as_words("--strategy mirrored --cpus-per-task 2 -- --replicas 4 --share-devices")),
      "");
}

// The CPUs of the login node do not limit those of the job.
TEST(SbatchCommand, DoesNotCountTheCpusOfThisMachine) {
  EXPECT_EQ(error_of({"--strategy", "mirrored", "--", "--replicas", "1000"}), "");
}

}  // namespace
}  // namespace syncopate
