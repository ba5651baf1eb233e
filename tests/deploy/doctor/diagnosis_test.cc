// Tests that doctor finds the usual mistakes in reports such as tasks send.
#include "deploy/doctor/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "deploy/doctor/inspection.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

using Kind = Finding::Kind;

TaskReport healthy(int index) {
  return {.name = "worker " + std::to_string(index),
          .host = index < 2 ? "a" : "b",
          .boot_id = index < 2 ? "1" : "2",
          .program = "0123",
          .version = "0.1.0",
          .libraries = {{"oneDNN", "2.6.3"}},
          .isa = "x86-64-v4",
          .cpus = {2 * (index % 2), 2 * (index % 2) + 1},
          .threads = 2,
          .gpus = {"0000:1b:00." + std::to_string(index % 2)},
          .clock_seconds = 1000.0 + 0.01 * index,
          .shm_free_bytes = std::int64_t{1} << 30,
          .open_files = 4096,
          .data = "60000 samples"};
}

// The fixture has reports of four tasks on two machines.
class Diagnosis : public testing::Test {
 protected:
  Diagnosis() {
    for (int i = 0; i < 4; ++i) tasks_.push_back(healthy(i));
  }

  // Returns doctor's finding of the given kind about `what`; "" if there is none.
  std::string finds(Kind kind, const std::string& what) const {
    for (const Finding& finding : diagnose(job_, tasks_)) {
      if (finding.kind == kind && finding.what == what) return finding.line;
    }
    return "";
  }

  JobUnderTest job_{.strategy = "multi-worker-mirrored",
                    .collective = "ring",
                    .devices = "cuda",
                    .replicas = 4,
                    .global_batch = 64,
                    .checkpoint_dir = "/shared/run"};
  std::vector<TaskReport> tasks_;
};

TEST_F(Diagnosis, HasNoProblemsForAHealthyJob) {
  for (const Finding& finding : diagnose(job_, tasks_)) {
    EXPECT_EQ(finding.kind, Kind::kGood) << finding.what << ": " << finding.line;
  }
}

TEST_F(Diagnosis, NamesTheReasonForAMissingGpu) {
  tasks_[2].device_problem = "no NVIDIA driver is loaded here";
  const std::string line = finds(Kind::kError, "GPUs");
  EXPECT_EQ(line, "worker 2 (host b): no NVIDIA driver is loaded here");
  job_.devices = "cpu";
  EXPECT_EQ(finds(Kind::kError, "GPUs"), "") << "a job on CPUs needs no GPU";
}

TEST_F(Diagnosis, NamesTheTaskThatMayOpenTooFewFiles) {
  tasks_[1].open_files_needed = 4096;
  EXPECT_EQ(finds(Kind::kError, "open files"), "");
  tasks_[1].open_files_needed = 4097;
  EXPECT_EQ(finds(Kind::kError, "open files"),
            "worker 1 (host a) may open 4096 files and needs 4097: raise the limit with ulimit -n "
            "4097");
}

TEST_F(Diagnosis, NamesEveryFlagThatAllTasksMustShare) {
  for (TaskReport& task : tasks_) {
    task.agreements = {{"--seed", "1"}, {"--threads", "2", false}, {"instruction set", "v4"}};
  }
  EXPECT_EQ(finds(Kind::kGood, "flags"), "equal where they must be");
  tasks_[3].agreements = {{"--seed", "2"}, {"--threads", "4", false}, {"instruction set", "v3"}};
  EXPECT_EQ(
      finds(Kind::kError, "flags"),
      "worker 3 (host b) has --seed 2, worker 0 (host a) has --seed 1: give all tasks the same");
  EXPECT_EQ(finds(Kind::kWarning, "flags"),
            "worker 3 (host b) has --threads 4, worker 0 (host a) has --threads 2: give all tasks "
            "the same");
  EXPECT_EQ(finds(Kind::kGood, "flags"), "");
}

TEST_F(Diagnosis, ComparesNoFlagsOfServers) {
  tasks_[0].agreements = {};
  tasks_[1].agreements = tasks_[2].agreements = tasks_[3].agreements = {{"--seed", "1"}};
  EXPECT_EQ(finds(Kind::kError, "flags"), "");
}

TEST_F(Diagnosis, ReportsTheAbsentTasksOfAJobOfOne) {
  tasks_.resize(1);
  EXPECT_TRUE(contains(finds(Kind::kError, "tasks"), "srun"));
}

TEST_F(Diagnosis, NamesTasksThatRunAnotherBuild) {
  tasks_[2].program = "4567";
  const std::string line = finds(Kind::kError, "program");
  EXPECT_TRUE(contains(line, "worker 2 (host b)", "4567"));
}

TEST_F(Diagnosis, NamesLibrariesAndProcessorsThatDiffer) {
  tasks_[3].libraries["oneDNN"] = "3.1";
  tasks_[3].isa = "x86-64-v3";
  EXPECT_TRUE(contains(finds(Kind::kWarning, "libraries"), "oneDNN 3.1"));
  EXPECT_TRUE(contains(finds(Kind::kWarning, "processors"), "x86-64-v3"));
}

TEST_F(Diagnosis, SeesTwoTasksOnOneGpu) {
  tasks_[1].gpus = tasks_[0].gpus;
  EXPECT_TRUE(contains(finds(Kind::kError, "GPUs"), "worker 0 (host a) and worker 1"));
  job_.shares_devices = true;
  EXPECT_EQ(finds(Kind::kError, "GPUs"), "");
  job_.shares_devices = false;
  job_.devices = "cpu";
  EXPECT_EQ(finds(Kind::kError, "GPUs"), "") << "a job on CPUs needs no GPU";
}

TEST_F(Diagnosis, AllowsTheSameAddressOfAGpuOnTwoMachines) {
  EXPECT_EQ(tasks_[0].gpus, tasks_[2].gpus);
  EXPECT_EQ(finds(Kind::kError, "GPUs"), "");
}

TEST_F(Diagnosis, SeesMoreThreadsThanCpus) {
  tasks_[1].cpus = tasks_[0].cpus;
  EXPECT_TRUE(contains(finds(Kind::kWarning, "CPUs"), "4 threads on 2 CPUs"));
}

TEST_F(Diagnosis, CountsTheCpusOfTheQuota) {
  EXPECT_EQ(finds(Kind::kGood, "CPUs"), "a: 4 CPUs for 4 threads");
  for (TaskReport& task : tasks_) task.cpu_quota = 2.5;
  EXPECT_TRUE(contains(finds(Kind::kWarning, "CPUs"), "4 threads on 3 of 4 CPUs (CPU quota 2.5"));
}

TEST_F(Diagnosis, DividesTheBatch) {
  job_.global_batch = 66;
  EXPECT_TRUE(contains(finds(Kind::kWarning, "batch"), "66"));
  job_.global_batch = 3;
  EXPECT_NE(finds(Kind::kError, "batch"), "");
}

TEST_F(Diagnosis, ComparesClocks) {
  tasks_[2].clock_seconds += 83.0;
  const std::string line = finds(Kind::kWarning, "clocks");
  EXPECT_TRUE(contains(line, "worker 2 (host b) is 83.0 s ahead"));
}

TEST_F(Diagnosis, ReportsARefusalThatAllTasksShareOnce) {
  for (TaskReport& task : tasks_) task.refusals = {"--model m does not fit --data d"};
  tasks_[0].refusals.emplace_back("--checkpoint-dir D already holds one");
  const auto found = diagnose(job_, tasks_);
  EXPECT_EQ(std::ranges::count(found, "train", &Finding::what), 2);
}

TEST_F(Diagnosis, SeesAFolderThatIsNotShared) {
  tasks_[3].sees_chiefs_file = false;
  EXPECT_TRUE(contains(finds(Kind::kError, "checkpoints"), "worker 3"));
  tasks_[3].folder_problem = "cannot write to /shared/run: permission denied";
  EXPECT_TRUE(contains(finds(Kind::kError, "checkpoints"), "permission denied"));
}

TEST_F(Diagnosis, ReportsOneErrorForAFolderThatTheFirstTaskCannotWrite) {
  tasks_[0].folder_problem = "cannot write to /shared/run: permission denied";
  for (TaskReport& task : tasks_) task.sees_chiefs_file = false;
  const auto findings = diagnose(job_, tasks_);
  EXPECT_EQ(std::ranges::count(findings, Kind::kError, &Finding::kind), 1);
  EXPECT_TRUE(contains(finds(Kind::kError, "checkpoints"), "permission denied"));
  EXPECT_EQ(finds(Kind::kGood, "checkpoints"), "");
}

TEST_F(Diagnosis, ConfirmsNothingAboutTasksThatDidNotJoin) {
  job_.tasks = 5;
  for (const std::string what : {"tasks", "program", "data", "checkpoints"}) {
    EXPECT_EQ(finds(Kind::kGood, what), "") << what;
  }
}

TEST_F(Diagnosis, ComparesDataOfWorkersOnly) {
  tasks_[0].data.clear();  // task 0 is a server, which reports no data set
  EXPECT_EQ(finds(Kind::kError, "data"), "");
  tasks_[3].data = "50000 samples";
  EXPECT_TRUE(contains(finds(Kind::kError, "data"), "worker 3"));
}

TEST_F(Diagnosis, SeesLittleSharedMemoryWhereItIsUsed) {
  tasks_[0].shm_free_bytes = std::int64_t{60} << 20;
  EXPECT_EQ(finds(Kind::kWarning, "/dev/shm"), "") << "our ring has none there";
  job_.collective = "mpi";
  EXPECT_TRUE(contains(finds(Kind::kWarning, "/dev/shm"), "60 MB"));
}

TEST_F(Diagnosis, ReportsProxiesAsHarmless) {
  tasks_[0].proxies = {"http_proxy"};
  EXPECT_TRUE(contains(finds(Kind::kNote, "proxies"), "harmless"));
}

TEST_F(Diagnosis, ShowsPortsOfTheNetworkAndTheVariablesOfNccl) {
  EXPECT_EQ(finds(Kind::kNote, "NCCL"), "");
  tasks_[0].rdma_ports = {"mlx5_0 port 1: InfiniBand, ACTIVE, 200 Gb/sec (4X HDR)"};
  EXPECT_TRUE(contains(finds(Kind::kNote, "RDMA"), "200 Gb/sec"));
  EXPECT_EQ(finds(Kind::kNote, "NCCL"), "none of NCCL's variables is set");
  for (TaskReport& task : tasks_) task.nccl = {"NCCL_IB_GID_INDEX=3"};
  EXPECT_EQ(finds(Kind::kNote, "NCCL"), "NCCL_IB_GID_INDEX=3");
  tasks_[2].nccl = {"NCCL_IB_GID_INDEX=1"};
  EXPECT_TRUE(contains(finds(Kind::kWarning, "NCCL"), "has NCCL_IB_GID_INDEX=1"));
}

TEST(RdmaPorts, AreDescribedWithTheirLinkAndTheirGids) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  };
  write("mlx5_1/ports/1/link_layer", "Ethernet");
  write("mlx5_1/ports/1/state", "4: ACTIVE");
  write("mlx5_1/ports/1/rate", "100 Gb/sec (4X EDR)");
  write("mlx5_1/ports/1/gid_attrs/types/10", "RoCE v2");
  write("mlx5_1/ports/1/gid_attrs/types/2", "IB/RoCE v1");
  write("mlx5_1/ports/1/gid_attrs/types/3", "RoCE v2");
  write("mlx5_0/ports/1/link_layer", "InfiniBand");
  write("mlx5_0/ports/1/state", "1: DOWN");
  write("mlx5_0/ports/1/rate", "10 Gb/sec (4X SDR)");
  EXPECT_EQ(rdma_ports(folder.path()),
            (std::vector<std::string>{
                "mlx5_0 port 1: InfiniBand, DOWN, 10 Gb/sec (4X SDR)",
                "mlx5_1 port 1: RoCE, ACTIVE, 100 Gb/sec (4X EDR), GID 3, 10 for RoCE v2"}));
  EXPECT_TRUE(rdma_ports(folder.path() / "absent").empty());
}

TEST_F(Diagnosis, PutsTheWorstFirst) {
  tasks_[2].program = "4567";
  job_.checkpoint_dir.clear();
  const std::string text = describe(diagnose(job_, tasks_));
  EXPECT_TRUE(text.starts_with("ERROR")) << text;
  EXPECT_LT(text.find("note"), text.find("ok "));
  EXPECT_TRUE(has_errors(diagnose(job_, tasks_)));
}

TEST(ATaskReport, IsReadBack) {
  const TaskReport report = healthy(3);
  EXPECT_EQ(encode(decode_task_report(encode(report))), encode(report));
}

}  // namespace
}  // namespace syncopate
