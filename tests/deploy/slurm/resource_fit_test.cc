// Tests which tasks, CPUs and GPUs `syncopate sbatch` requests for the flags of train.
#include "deploy/slurm/resource_fit.h"

#include <optional>
#include <tuple>
#include <utility>

#include "deploy/slurm/gpu_request.h"
#include "tests/deploy/slurm/sbatch_case.h"

namespace syncopate {
namespace {

TEST(SbatchCommand, RequestsAGpuForEachReplicaOnGpus) {
  const auto with = [](const Arguments& flags, const Arguments& more = {}) {
    return sbatch_script(as_words(flags, "-- --devices cuda", more));
  };
  expect_line(with({"--strategy", "multi-worker-mirrored"}), "#SBATCH --gres=gpu:1");
  expect_line(with({"--strategy", "multi-worker-mirrored", "--tasks-per-node", "4"}),
              "#SBATCH --gres=gpu:4");
  expect_line(with({"--strategy", "mirrored"}, {"--replicas", "4"}), "#SBATCH --gres=gpu:4");
  expect_line(sbatch_script({"--strategy", "one-device", "--", "--devices", "cuda:1"}),
              "#SBATCH --gres=gpu:2");
  expect_line(sbatch_script({"--strategy", "mirrored", "--", "--devices", "cuda:0,cuda:1"}),
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
  EXPECT_TRUE(contains(sbatch_error({"--script", "multi_node", "--", "--devices", "cuda"}),
                       "requests no GPU"));
  EXPECT_EQ(sbatch_error({"--strategy", "mirrored", "--", "--devices", "cuda"}),
            "--strategy mirrored requires a number of replicas behind --, such as -- --replicas 2, "
            "or GPUs in front of it, such as --gpus-per-task 2");
  for (const Arguments& request :
       {Arguments{"--gres", "gpu:2"}, Arguments{"--sbatch-option", "gpus-per-node=2"}}) {
    Arguments flags = as_words("--strategy multi-worker-mirrored", request);
    expect_line(with(flags), "##SBATCH --gpus-per-task=1");
    EXPECT_FALSE(contains(with(flags), "gpu:1"));
  }
}

TEST(SbatchCommand, StartsATaskForEachGpuOfANode) {
  const auto tasks = [](const Arguments& flags) {
    const SbatchOptions options =
        sbatch_options(as_words("--strategy multi-worker-mirrored", flags, "-- --devices cuda"));
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
    const SbatchOptions options = sbatch_options(
        as_words("--strategy multi-worker-mirrored", flags, "-- --devices", of_train));
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
  const auto error = [](const Arguments& words) {
    return sbatch_error(as_words("--strategy pipeline --nodes 2 --gres gpu:4", words,
                                 "-- --model mlp --devices cuda --cut fc1"));
  };
  EXPECT_TRUE(contains(error({}), "started 8 tasks"));
  EXPECT_EQ(error({"--tasks-per-node", "1"}), "");
  EXPECT_EQ(sbatch_error(
                as_words("--strategy parameter-server -- --consistency sync --backup-workers 1")),
            "")
      << "the script has 2 nodes";
}

TEST(SbatchCommand, SaysWhichGpusStayIdle) {
  const auto note = [](const Arguments& words) { return first_note(sbatch_options(words)); };
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
    return sbatch_options(
        as_words("--strategy pipeline --nodes 1 --gres gpu:4 -- --devices", of_train));
  };
  const auto note = [&](const Arguments& of_train) { return first_note(options(of_train)); };
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
  expect_line(sbatch_script(as_words("--strategy pipeline -- --devices cuda --stages 4")),
              "#SBATCH --gres=gpu:4");
}

TEST(SbatchCommand, RequestsTheCpusOfReplicasAndThreads) {
  const auto cpus = [](const Arguments& train_flags) {
    const std::string script = sbatch_script(as_words("--strategy mirrored --", train_flags));
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
  EXPECT_EQ(sbatch_error(as_words("--strategy mirrored --cpus-per-task 2 -- --replicas 4")),
            "--cpus-per-task 2 for --replicas 4: replicas that share a CPU wait for each other; "
            "give one to each, or --share-devices behind -- if that is meant");
  EXPECT_EQ(sbatch_error(
                as_words("--strategy mirrored --cpus-per-task 2 -- --replicas 4 --devices cuda")),
            "")
      << "on GPUs CPUs only feed them";
  EXPECT_EQ(sbatch_error(as_words("--strategy mirrored --cpus-per-task 4 -- --replicas 4")), "");
  EXPECT_EQ(sbatch_error(
                as_words("--strategy mirrored --cpus-per-task 2 -- --replicas 4 --share-devices")),
            "");
}

// The CPUs of the login node do not limit those of the job.
TEST(SbatchCommand, DoesNotCountTheCpusOfThisMachine) {
  EXPECT_EQ(sbatch_error({"--strategy", "mirrored", "--", "--replicas", "1000"}), "");
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

}  // namespace
}  // namespace syncopate
