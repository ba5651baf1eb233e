// Tests which job script `syncopate sbatch` chooses, which values it fills in, and which flags it
// refuses.
#include "tests/deploy/slurm/sbatch_case.h"
#include "worker/input/record/example.h"

namespace syncopate {
namespace {

TEST(SbatchCommand, TakesTheScriptThatTheStrategyNeeds) {
  EXPECT_EQ(sbatch_options({"--strategy", "one-device"}).script, "one_node");
  EXPECT_EQ(sbatch_options({"--strategy", "mirrored", "--", "--replicas", "4"}).script, "one_node");
  EXPECT_EQ(sbatch_options({"--strategy", "multi-worker-mirrored"}).script, "multi_node");
  EXPECT_EQ(sbatch_options({"--strategy", "parameter-server"}).script, "parameter_server_het");
  EXPECT_EQ(sbatch_options({"--script", "compare"}).script, "compare");
  EXPECT_EQ(sbatch_options({"--strategy", "pipeline", "--", "--stages", "2"}).script, "one_node");
  EXPECT_EQ(sbatch_options({"--strategy", "pipeline", "--nodes", "3"}).script, "multi_node");
}

TEST(SbatchCommand, NamesTheStrategyOfAPipelineInItsTraining) {
  const std::string script = sbatch_script(as_words("--strategy pipeline --nodes 2 -- --epochs 1"));
  expect_line(script, "TRAIN=(--strategy pipeline --epochs 1)");
  const std::string header = script.substr(0, script.find("#SBATCH"));
  EXPECT_FALSE(contains(header, "multi-worker-mirrored"));
  EXPECT_TRUE(contains(header, "with the strategy in TRAIN"));
}

TEST(SbatchCommand, FillsInTheSizeTheProgramAndTheFlagsOfTrain) {
  const std::string script = sbatch_script(as_words(
      "--strategy multi-worker-mirrored --nodes 4 --tasks-per-node 2 --cpus-per-task 16 --time "
      "1-12:00:00 --partition gpu --account lab --job-name mine --program",
      std::string("/opt/my programs/syncopate"), "-- --data mnist:/data/mnist --epochs 3"));
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
      const std::string script = sbatch_script(as_words(where, "-- --epochs 3", data));
      expect_line(script, "DATA='csv:a b.csv'");
      EXPECT_TRUE(lacks(script, "--data csv", "--data=csv", "--data 'csv"));
    }
  }
  expect_line(sbatch_script({"--strategy", "one-device"}), "DATA=digits");
}

TEST(SbatchCommand, LeavesOutFlagsThatWereNotGiven) {
  const std::string script = sbatch_script({"--strategy", "multi-worker-mirrored"});
  expect_line(script, "##SBATCH --partition=PARTITION");
  expect_line(script, "#SBATCH --time=00:30:00");
  expect_line(script, "PROGRAM=syncopate");
}

TEST(SbatchCommand, GivesServersAComponentOfTheirOwn) {
  const std::string script =
      sbatch_script(as_words("--strategy parameter-server --nodes 8 --servers 4 --server-nodes 2 "
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
  expect_line(sbatch_script({"--strategy", "multi-worker-mirrored", "--", "--collective", "mpi"}),
              "LAUNCHER=mpirun");
}

TEST(SbatchCommand, TurnsTheContainerOn) {
  const std::string script =
      sbatch_script({"--strategy", "one-device", "--container", "images/a.sif"});
  expect_line(script, "USE_CONTAINER=true");
  expect_line(script, "CONTAINER=images/a.sif");
  expect_line(sbatch_script({"--strategy", "one-device", "--container", "a.sif",
                             "--container-flags", "--nv --bind /scratch"}),
              "CONTAINER_FLAGS=(--nv --bind /scratch)");
}

TEST(SbatchCommand, FillsInAComparisonAndABuild) {
  const std::string compare =
      sbatch_script(as_words("--script compare --nodes 5 --servers 2 -- --model resnet20"));
  expect_line(compare, "#SBATCH --nodes=5");
  expect_line(compare, "SERVERS=2");
  expect_line(compare,
              "TRAIN=(--model mnist-cnn --batch-size-per-replica 32 --threads 1 --eval-every-steps "
              "100 --log-every 100 --model resnet20)");
  expect_line(sbatch_script({"--script", "build", "--cpus-per-task", "32"}),
              "#SBATCH --cpus-per-task=32");
}

// The requests of the jobs in the guides of clusters: resources, mail.
TEST(SbatchCommand, FillsInResourcesAndOtherOptionsOfSbatch) {
  const std::string script = sbatch_script(as_words(
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
      sbatch_script(as_words("--strategy parameter-server --gpus-per-task 1 --qos long"));
  const std::size_t border = script.find("#SBATCH hetjob");
  EXPECT_FALSE(contains(script.substr(0, border), "\n#SBATCH --gpus"));
  expect_line(script.substr(0, border), "#SBATCH --qos=long");
  expect_line(script.substr(border), "#SBATCH --gpus-per-task=1");
  expect_line(script.substr(border), "#SBATCH --qos=long");
}

TEST(SbatchCommand, RefusesOptionsThatAFlagOrTheScriptSets) {
  const auto error = [](const char* option) {
    return sbatch_error({"--strategy", "one-device", "--sbatch-option", option});
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
  EXPECT_EQ(sbatch_error({"--strategy", "one-device", "--gres", ""}),
            "--gres '': expected a value as sbatch takes it");
}

TEST(SbatchCommand, TrainsEachElementOfAnArrayWithItsOwnSeed) {
  const std::string script =
      sbatch_script(as_words("--strategy one-device --array seed=0-9%4 -- --epochs 1"));
  expect_line(script, "#SBATCH --array=0-9%4");
  expect_line(script, "#SBATCH --output=%x-%A-%a.out");
  expect_line(sbatch_script(as_words(
                  "--strategy one-device --array seed=1,3-5 --sbatch-option output=logs/%a.out")),
              "#SBATCH --output=logs/%a.out");
  EXPECT_FALSE(contains(sbatch_script({"--strategy", "one-device"}), "#SBATCH --array"));
  for (const char* bad : {"0-9", "seed=", "seed=a", "seed=0-", "seed=-3", "rate=0-3"}) {
    EXPECT_TRUE(
        contains(sbatch_error({"--strategy", "one-device", "--array", bad}), "expected seed=LIST"))
        << bad;
  }
  EXPECT_TRUE(contains(sbatch_error({"--strategy", "one-device", "--sbatch-option", "array=0-9"}),
                       "give --array seed=0-9"))
      << "all elements would train with one seed";
  EXPECT_TRUE(contains(sbatch_error({"--strategy", "parameter-server", "--array", "seed=1-3"}),
                       "Slurm has no arrays of jobs whose servers"));
  EXPECT_TRUE(contains(sbatch_error({"--script", "compare", "--array", "seed=1-3"}),
                       "requires --strategy"));
  EXPECT_TRUE(contains(sbatch_error(as_words("--strategy one-device --array seed=1-3 -- --seed 4")),
                       "leave one out"));
}

TEST(SbatchCommand, RefusesFilesThatAllElementsOfAnArrayWouldWrite) {
  const auto error = [](const Arguments& of_train) {
    return sbatch_error(as_words("--strategy one-device --array seed=1-3 --", of_train));
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
  EXPECT_EQ(sbatch_error({"--strategy", "one-device", "--", "--checkpoint-dir", "runs/a"}), "");
}

TEST(SbatchCommand, KnowsThatItsScriptsWriteCheckpoints) {
  EXPECT_EQ(sbatch_error(as_words("--strategy one-device -- --checkpoint-every 5 --keep-best")),
            "");
}

TEST(SbatchCommand, LeavesAJobEndedThatMustNotReturnToTheQueue) {
  for (const char* strategy : {"one-device", "multi-worker-mirrored", "parameter-server"}) {
    const SbatchOptions stays =
        sbatch_options({"--strategy", strategy, "--sbatch-option", "no-requeue"});
    const std::string script = filled_script(stays);
    expect_line(script, "#SBATCH --no-requeue");
    EXPECT_FALSE(contains(script, "#SBATCH --requeue"));
    EXPECT_EQ(stays.notes.size(), 1U);
    const SbatchOptions returns =
        sbatch_options({"--strategy", strategy, "--sbatch-option", "requeue"});
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
    EXPECT_TRUE(lacks(sbatch_script(which), "EDIT ", "marked EDIT"));
  }
}

TEST(SbatchCommand, RefusesWhatThisBuildCannotRead) {
  bool has_records = true;
  try {
    require_records("");
  } catch (const UnavailableError&) {
    has_records = false;
  }
  const std::string error =
      sbatch_error({"--strategy", "one-device", "--", "--data", "tfds:cassava"});
  EXPECT_EQ(error.empty(), has_records) << error;
  EXPECT_EQ(
      sbatch_error(as_words("--strategy one-device --container a.sif -- --data tfds:cassava")), "")
      << "another build";
}

TEST(SbatchCommand, RefusesInOneLineWhatItWillNotSubmit) {
  EXPECT_EQ(sbatch_error({}), "--strategy is missing; give --strategy NAME, or --script NAME");
  EXPECT_EQ(sbatch_error({"--strategy", "mirrored", "--script", "one_node"}),
            "--script and --strategy: leave one of them out");
  EXPECT_EQ(sbatch_error({"--strategy", "mirrored"}),
            "--strategy mirrored requires a number of replicas behind --, such as -- --replicas 2");
  EXPECT_EQ(sbatch_error({"--strategy", "one-device", "--nodes", "2"}),
            "--strategy one-device is one process, but --nodes and --tasks-per-node request 2; "
            "choose --strategy multi-worker-mirrored or parameter-server");
  EXPECT_EQ(
      sbatch_error(as_words("--strategy parameter-server --servers 3 --server-nodes 2")),
      "--servers 3: expected a multiple of --server-nodes 2, since all nodes run equally many "
      "servers");
  EXPECT_EQ(sbatch_error({"--strategy", "multi-worker-mirrored", "--servers", "3"}),
            "--servers requires --strategy parameter-server");
  EXPECT_EQ(
      sbatch_error({"--script", "compare", "--servers", "3"}),
      "--servers 3 of 3 tasks: no task is left to train; give more --nodes or --tasks-per-node");
  EXPECT_EQ(sbatch_error({"--strategy", "one-device", "--container-flags", "--nv"}),
            "--container-flags requires --container");
  EXPECT_EQ(sbatch_error({"--strategy", "multi-worker-mirrored", "--partition", "a b"}),
            "--partition 'a b': expected one word as sbatch takes it");
}

TEST(SbatchCommand, RefusesWhatTrainWouldRefuseOnceTheJobHasStarted) {
  EXPECT_TRUE(sbatch_error({"--strategy", "multi-worker-mirrored", "--", "--model", "resnet21"})
                  .starts_with("--model resnet21: no such name; did you mean 'resnet20'?"));
  EXPECT_EQ(sbatch_error(as_words(
                "--strategy multi-worker-mirrored -- --rank 0 --world-size 2 --rendezvous a:1")),
            "--rank, --world-size and --rendezvous: Slurm gives each task its own; leave them out");
  EXPECT_EQ(sbatch_error({"--strategy", "one-device", "--", "--strategy", "mirrored"}),
            "--strategy mirrored behind --: give it in front, because it decides which script is "
            "submitted");
}

}  // namespace
}  // namespace syncopate
