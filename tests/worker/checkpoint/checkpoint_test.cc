#include "worker/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/checkpoint/checkpoint_case.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  Graph graph_ = checkpoint_graph();
  Snapshot saved_ = counting_snapshot(graph_, adam_slots(), 1.0F);
  Snapshot target_ = counting_snapshot(graph_, adam_slots(), -50'000.0F);
  std::filesystem::path path_ = checkpoint_path(folder_.path(), 1234);

  void save() { save_checkpoint(path_, graph_, saved_, "adam", some_progress()); }
};

TEST_F(CheckpointTest, IsRestoredBitForBit) {
  save();
  const CheckpointInfo info = load_checkpoint(path_, graph_, target_, "adam", true);
  EXPECT_EQ(tensor_values(graph_, target_), tensor_values(graph_, saved_));
  EXPECT_EQ(info.path, path_);
  EXPECT_EQ(info.model, "small");
  EXPECT_EQ(info.optimizer, "adam");
  EXPECT_EQ(info.progress.at.step, 1234);
  EXPECT_EQ(info.progress.at.samples, 78'976);
  EXPECT_EQ(info.progress.at.position, (ps::DataPosition{1, 18'976}));
  EXPECT_EQ(info.progress.data, "digits");
  EXPECT_EQ(info.progress.seed, 42U);
}

TEST_F(CheckpointTest, HasThePermissionsThatTheUmaskAllows) {
  using std::filesystem::perms;
  const std::pair<mode_t, perms> cases[] = {{0077, perms{0600}}, {0022, perms{0644}}};
  for (const auto& [mask, permissions] : cases) {
    const mode_t before = ::umask(mask);
    save();
    ::umask(before);
    EXPECT_EQ(std::filesystem::status(path_).permissions(), permissions) << std::oct << mask;
    std::filesystem::remove(path_);
  }
}

TEST_F(CheckpointTest, KeepsTheLargestSeed) {
  Progress progress = some_progress();
  progress.seed = ~std::uint64_t{0};
  save_checkpoint(path_, graph_, saved_, "adam", progress);
  EXPECT_EQ(load_checkpoint(path_, graph_, target_, "adam", true).progress.seed, progress.seed);
}

TEST_F(CheckpointTest, KeepsItsNetworkAndTheDataFlag) {
  Progress progress = some_progress();
  progress.data_flag = "mnist:/data/mnist";
  auto& input = std::get<InputOp>(graph_.nodes.front().operation);
  input.mean = {0.25F, 0.4914F};
  save_checkpoint(path_, graph_, saved_, "adam", progress);
  const CheckpointInfo info = read_checkpoint_info(path_);
  EXPECT_EQ(info.progress.data_flag, "mnist:/data/mnist");
  const Graph graph = recorded_network(info);
  EXPECT_EQ(to_text(graph), to_text(graph_));
  EXPECT_EQ(std::get<InputOp>(graph.first_input().operation).mean, input.mean);
  load_checkpoint(path_, graph, target_, "adam", true);
  EXPECT_EQ(tensor_values(graph_, target_), tensor_values(graph_, saved_));
}

TEST_F(CheckpointTest, WithANetworkOfAnotherProgramIsAnErrorNamingIt) {
  save();
  CheckpointInfo info = read_checkpoint_info(path_);
  info.network.replace(info.network.find("relu"), 4, "mish");
  EXPECT_TRUE(contains(message_of<FileError>([&] { (void)recorded_network(info); }), path_.string(),
                       "mish"));
}

TEST_F(CheckpointTest, KeepsHeadAndNormalization) {
  Progress progress = some_progress();
  progress.head = "dense:1016";
  progress.normalize = "imagenet";
  save_checkpoint(path_, graph_, saved_, "adam", progress);
  const CheckpointInfo info = read_checkpoint_info(path_);
  EXPECT_EQ(info.progress.head, "dense:1016");
  EXPECT_EQ(info.progress.normalize, "imagenet");
}

TEST_F(CheckpointTest, KeepsTheNamesOfClasses) {
  Progress progress = some_progress();
  progress.class_names = "black cat\nd\xC3\xB6g";
  save_checkpoint(path_, graph_, saved_, "adam", progress);
  EXPECT_EQ(read_checkpoint_info(path_).progress.class_names, progress.class_names);
}

TEST_F(CheckpointTest, KeepsTheLossScaleOfScaledLosses) {
  saved_.loss_scale = LossScaleState{.scale = 98304.0F, .good_steps = 1234, .skipped_steps = 3};
  save();
  EXPECT_EQ(load_checkpoint(path_, graph_, target_, "adam", true).loss_scale, saved_.loss_scale);
  saved_.loss_scale = {};
  save();
  EXPECT_EQ(load_checkpoint(path_, graph_, target_, "adam", true).loss_scale, std::nullopt);
}

TEST_F(CheckpointTest, KeepsTheRateOfTheOuterMomentum) {
  saved_.outer_rate = 0.1F;
  save();
  EXPECT_EQ(load_checkpoint(path_, graph_, target_, "adam", true).outer_rate, 0.1F);
  saved_.outer_rate = {};
  save();
  EXPECT_EQ(load_checkpoint(path_, graph_, target_, "adam", true).outer_rate, std::nullopt);
}

// Saves slots that hold 1, 2, ... and returns the first elements of `wanted` after loading them.
class SlotsOfWorkers : public CheckpointTest {
 protected:
  std::vector<float> load(const std::vector<std::string>& saved,
                          const std::vector<std::string>& wanted) {
    saved_ = counting_snapshot(graph_, saved, 0.0F);
    float next = 1.0F;
    for (const Snapshot::Slot& slot : saved_.slots) {
      std::ranges::fill(slot.values.f32(), next++);
    }
    save_checkpoint(path_, graph_, saved_, "momentum", some_progress());
    const Snapshot found = counting_snapshot(graph_, wanted, -7.0F);
    notes_ = load_checkpoint(path_, graph_, found, "momentum", true).notes;
    std::vector<float> firsts;
    for (const Snapshot::Slot& slot : found.slots) firsts.push_back(slot.values.f32()[0]);
    return firsts;
  }
  std::vector<std::string> notes_;
};

using Slots = std::vector<std::string>;

TEST_F(SlotsOfWorkers, AreKeptByAsManyWorkers) {
  EXPECT_EQ(load({"momentum@0", "momentum@1"}, {"momentum@0", "momentum@1"}),
            (std::vector{1.0F, 2.0F}));
  EXPECT_EQ(notes_, Slots{});
}

TEST_F(SlotsOfWorkers, AreUsedInTurnByMoreWorkers) {
  EXPECT_EQ(load({"momentum@0", "momentum@1"}, {"momentum@0", "momentum@1", "momentum@2"}),
            (std::vector{1.0F, 2.0F, 1.0F}));
  EXPECT_EQ(notes_, Slots{"the checkpoint has the optimizer's state of 2 workers: worker r of 3 "
                          "continues with the state of worker r mod 2"});
}

TEST_F(SlotsOfWorkers, BecomeTheirMeanInOtherStrategies) {
  EXPECT_EQ(load({"momentum@0", "momentum@1"}, {"momentum"}), std::vector{1.5F});
  EXPECT_EQ(notes_, Slots{"the optimizer's state is the mean of the states of the 2 workers in the "
                          "checkpoint"});
}

TEST_F(SlotsOfWorkers, AllBeginWithACommonSet) {
  EXPECT_EQ(load({"momentum"}, {"momentum@0", "momentum@1"}), (std::vector{1.0F, 1.0F}));
  EXPECT_EQ(notes_, Slots{"every worker continues with the optimizer's state in the checkpoint"});
}

TEST_F(SlotsOfWorkers, NeverBecomeAnOuterMomentum) {
  EXPECT_EQ(load({"momentum"}, {"momentum", "outer_momentum"}), (std::vector{1.0F, 0.0F}));
  EXPECT_EQ(notes_, Slots{"the outer momentum starts at zero: the checkpoint has none"});
  EXPECT_EQ(load({"momentum", "outer_momentum"}, {"momentum"}), std::vector{1.0F});
  EXPECT_EQ(notes_, Slots{"the outer momentum of the checkpoint is not used"});
  EXPECT_EQ(load({"momentum", "outer_momentum"}, {"momentum", "outer_momentum"}),
            (std::vector{1.0F, 2.0F}));
  EXPECT_EQ(notes_, Slots{});
}

TEST_F(CheckpointTest, KeepsTheSkippedSamples) {
  Progress progress = some_progress();
  progress.at.position.untrained = {{0, 59'904, 60'000}, {1, 64, 128}, {1, 18'880, 18'944}};
  save_checkpoint(path_, graph_, saved_, "adam", progress);
  EXPECT_EQ(load_checkpoint(path_, graph_, target_, "adam", true).progress.at.position,
            progress.at.position);
}

TEST_F(CheckpointTest, KeepsTheStateOfTheRulesBitForBit) {
  Progress progress = some_progress();
  progress.at.rules = {0.1, 1234.0, -1.0 / 3.0, std::numeric_limits<double>::infinity(), 1e-300};
  save_checkpoint(path_, graph_, saved_, "adam", progress);
  EXPECT_EQ(read_checkpoint_info(path_).progress.at, progress.at);
}

TEST_F(CheckpointTest, LeavesThePaddingOfTheArenaUnchanged) {
  save();
  const auto padding = static_cast<std::size_t>(graph_.parameter_layout().size(0));
  const float before = target_.values.f32()[padding];
  load_checkpoint(path_, graph_, target_, "adam", true);
  EXPECT_EQ(target_.values.f32()[padding], before);
}

TEST_F(CheckpointTest, GivesValuesToAnyOptimizerWhenSlotsAreNotWanted) {
  save();
  const Snapshot without_slots = counting_snapshot(graph_, {}, -1.0F);
  load_checkpoint(path_, graph_, without_slots, "sgd", false);
  EXPECT_EQ(without_slots.values.f32()[0], 1.0F);
  EXPECT_EQ(without_slots.state.f32()[0], 1001.0F);
}

TEST_F(CheckpointTest, CreatesItsFolderAndLeavesNoTemporaryFile) {
  path_ = checkpoint_path(folder_.path() / "run" / "checkpoints", 1);
  save();
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_.parent_path()), {}), 1);
}

TEST_F(CheckpointTest, ReplacesAnOlderOneOfTheSameStep) {
  write_file(path_, "not a checkpoint");
  save();
  EXPECT_EQ(load_error(path_, graph_, target_), "");
}

TEST_F(CheckpointTest, OfAnotherNetworkNamesBothAndTheFirstDifference) {
  save();
  const Graph wider = checkpoint_graph("wide", 7);
  const Snapshot target = counting_snapshot(wider, adam_slots(), 0.0F);
  EXPECT_THROW(load_checkpoint(path_, wider, target, "adam", true), UsageError);
  const std::string message = load_error(path_, wider, target);
  EXPECT_TRUE(contains(message, "network small", "network wide",
                       "fc.weight is [5, 48] in the file, expected [7, 48]"));
  EXPECT_EQ(target.values.f32()[0], 0.0F);  // the target is unchanged
}

TEST_F(CheckpointTest, OfALargerNetworkNamesTheExtraTensor) {
  save();
  GraphBuilder build("small");
  const NodeId x = build.conv2d(build.input({4, 4, 2}, {}), "conv", 3, {.pad = 1});
  const Graph smaller = build.finish(build.dense(build.flatten(x), "fc", 5));
  const Snapshot target = counting_snapshot(smaller, adam_slots(), 0.0F);
  EXPECT_TRUE(contains(load_error(path_, smaller, target), "bn.weight is in the file only"));
}

TEST_F(CheckpointTest, OfAnotherOptimizerNamesBoth) {
  save();
  const Snapshot target = counting_snapshot(graph_, {"momentum"}, 0.0F);
  EXPECT_THROW(load_checkpoint(path_, graph_, target, "momentum", true), UsageError);
  EXPECT_TRUE(contains(load_error(path_, graph_, target, "momentum"),
                       "optimizer adam, this run has optimizer momentum"));
}

TEST_F(CheckpointTest, ThatDoesNotExistIsAnErrorNamingIt) {
  EXPECT_TRUE(contains(load_error(path_, graph_, target_), path_.string() + ": No such file"));
}

TEST_F(CheckpointTest, MustBeAFile) { EXPECT_NE(load_error(folder_.path(), graph_, target_), ""); }

TEST_F(CheckpointTest, FolderThatIsAFileIsRefusedAndKept) {
  const auto file = folder_.path() / "file";
  write_file(file, "precious");
  EXPECT_THROW(save_checkpoint(checkpoint_path(file, 1), graph_, saved_, "adam", some_progress()),
               FileError);
  EXPECT_EQ(read_file(file), "precious");
}

TEST_F(CheckpointTest, FolderWithoutWritePermissionIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not bind root";
  std::filesystem::permissions(
      folder_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_THROW(save(), FileError);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  EXPECT_EQ(folder_.num_files(), 0U);
}

// Limits the size of the files that this process writes, as if the disk were full at that size.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  void (*signal_)(int);
  rlimit before_{};
};

TEST_F(CheckpointTest, FailsOnAFullDiskAndLeavesTheLastOneIntact) {
  save();
  const std::string good = read_file(path_);
  const auto next = checkpoint_path(folder_.path(), 1235);
  for (const std::size_t room :
       {std::size_t{0}, std::size_t{100}, good.size() / 2, good.size() - 1}) {
    bool failed = false;
    {
      const FullDisk full(room);
      try {
        save_checkpoint(next, graph_, saved_, "adam", some_progress());
      } catch (const FileError&) {
        failed = true;
      }
    }
    EXPECT_TRUE(failed) << room << " bytes of room";
    EXPECT_EQ(folder_.num_files(), 1U) << room << " bytes of room";
  }
  EXPECT_EQ(read_file(path_), good);
}

TEST_F(CheckpointTest, NewestHasTheHighestStep) {
  EXPECT_EQ(newest_checkpoint(folder_.path()), std::nullopt);
  EXPECT_EQ(newest_checkpoint(folder_.path() / "absent"), std::nullopt);
  for (const std::int64_t step : {9L, 1'000'000'000'000L, 10L}) {
    write_file(checkpoint_path(folder_.path(), step), "");
  }
  write_file(folder_.path() / "checkpoint-9x.safetensors", "");
  write_file(folder_.path() / "checkpoint-.safetensors", "");
  write_file(checkpoint_path(folder_.path(), 2'000'000'000'000).string() + ".tmp-77", "");
  EXPECT_EQ(newest_checkpoint(folder_.path()), checkpoint_path(folder_.path(), 1'000'000'000'000));
}

TEST_F(CheckpointTest, PruningKeepsTheNewestAndRemovesLeftovers) {
  for (std::int64_t step = 1; step <= 5; ++step) {
    write_file(checkpoint_path(folder_.path(), step), "");
  }
  write_file(checkpoint_path(folder_.path(), 6).string() + ".tmp-77", "");
  write_file(folder_.path() / "metrics.jsonl", "");
  prune_checkpoints(folder_.path(), 2);
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder_.path(), 4)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder_.path(), 5)));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "metrics.jsonl"));
  EXPECT_EQ(folder_.num_files(), 3U);
}

TEST_F(CheckpointTest, PruningSparesTheBest) {
  for (std::int64_t step = 1; step <= 5; ++step) {
    write_file(checkpoint_path(folder_.path(), step), "");
  }
  prune_checkpoints(folder_.path(), 1, 2);
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder_.path(), 2)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder_.path(), 5)));
  EXPECT_EQ(folder_.num_files(), 2U);
}

TEST_F(CheckpointTest, PruningLeavesFilesThatAreBeingWritten) {
  const auto path = checkpoint_path(folder_.path(), 6);
  const std::vector<float> values{1.0F, 2.0F};
  SafetensorsWriter writer(path, {}, {{.name = "w", .shape = {2}}});
  prune_checkpoints(folder_.path(), 1);
  writer.append(values);
  writer.commit();
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(folder_.num_files(), 1U);
}

TEST_F(CheckpointTest, IsReadByPython) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no python3";
  save();
  std::ofstream expected(folder_.path() / "expected.txt");
  // Python must find the names and shapes of PyTorch's state_dict: channels first, and the
  // optimizer's slots beside the parameters.
  expected
      << "conv.weight [3, 2, 3, 3]\nbn.weight [3]\nbn.bias [3]\nfc.weight [5, 48]\nfc.bias [5]\n"
      << "bn.running_mean [3]\nbn.running_var [3]\n";
  for (const std::string& slot : adam_slots()) {
    expected << "optimizer." << slot << ".conv.weight [3, 2, 3, 3]\noptimizer." << slot
             << ".bn.weight [3]\noptimizer." << slot << ".bn.bias [3]\noptimizer." << slot
             << ".fc.weight [5, 48]\noptimizer." << slot << ".fc.bias [5]\n";
  }
  expected.close();
  const std::string command = "python3 '" SYNCOPATE_READ_CHECKPOINT "' '" + path_.string() + "' '" +
                              (folder_.path() / "expected.txt").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

using Ranges = std::vector<ps::SampleRange>;

TEST(SampleRangesAsJson, AreAListOfTriples) {
  EXPECT_EQ(to_json(Ranges{}), "[]");
  EXPECT_EQ(to_json(Ranges{{0, 64, 128}, {2, 0, 7}}), "[[0,64,128],[2,0,7]]");
}

TEST(SampleRangesAsJson, AreParsedBack) {
  const Ranges ranges = {{0, 64, 128}, {3, 0, 9'223'372'036'854'775'807}};
  EXPECT_EQ(parse_sample_ranges(to_json(ranges)), ranges);
  EXPECT_EQ(parse_sample_ranges("[]"), Ranges{});
  EXPECT_EQ(parse_sample_ranges(" [ [ 1, 2, 3 ] ] "), (Ranges{{1, 2, 3}}));
}

TEST(SampleRangesAsJson, AreRefusedInOtherForms) {
  for (const char* text : {"", "{}", "7", "[", "[1,2,3]", "[[1,2]]", "[[1,2,3,4]]", "[[1,2,3.5]]",
                           "[[-1,2,3]]", "[[1,-2,3]]", "[[1,3,3]]", "[[1,4,3]]", R"([["1",2,3]])",
                           "[[1,2,9223372036854775808]]", "[[1,2,null]]", "[[1,2,3]] x"}) {
    EXPECT_EQ(parse_sample_ranges(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace syncopate
