#include "worker/run/run_start.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "worker/run/run_data.h"

namespace syncopate {
namespace {

using Messages = std::deque<std::vector<std::byte>>;

// A membership with one task of several. The broadcasts of the chief are recorded, and the other
// tasks read them in order.
class OneOfSeveralTasks final : public Strategy, public SynchronousJob {
 public:
  OneOfSeveralTasks(const Graph& graph, bool is_chief, Messages& messages)
      : is_chief_(is_chief), messages_(messages) {
    values_.values = make_host_tensor({graph.parameter_layout().total()}, DType::kF32);
    values_.state = make_host_tensor({graph.state_layout().total()}, DType::kF32);
  }

  std::span<Replica> replicas() noexcept override { return {}; }
  int replicas_in_sync() const noexcept override { return 1; }
  InputShard input_shard() const noexcept override { return {}; }
  bool is_chief() const noexcept override { return is_chief_; }
  void for_each_replica(const std::function<void(Replica&)>& /*task*/) override {}
  std::vector<double> gather(std::span<const double> /*mine*/) override { return {}; }
  void broadcast(std::span<std::byte> bytes) override {
    if (is_chief_) {
      messages_.emplace_back(bytes.begin(), bytes.end());
      return;
    }
    ASSERT_FALSE(messages_.empty()) << "the chief sent less";
    ASSERT_EQ(messages_.front().size(), bytes.size());
    std::memcpy(bytes.data(), messages_.front().data(), bytes.size());
    messages_.pop_front();
  }
  void agree() override {}
  Tensor average(const Replica& /*replica*/) override { return {}; }
  Snapshot snapshot() override { return values_; }
  void restore(const Snapshot& /*saved*/) override { ++restored_; }
  void begin(const ps::RunPosition& start) override {
    EXPECT_EQ(restored_, 1) << "the variables hold what training starts from";
    begun_.push_back(start);
  }
  Job job(int /*replica*/) noexcept override { return this; }
  void leave() override {}
  void fail(std::string_view /*reason*/, bool /*ends_job*/) noexcept override {}
  void abort(std::string_view /*reason*/) noexcept override {}

  const std::vector<ps::RunPosition>& begun() const { return begun_; }

 private:
  bool is_chief_;
  Messages& messages_;
  Snapshot values_;
  int restored_ = 0;
  std::vector<ps::RunPosition> begun_;
};

Graph tiny_network() {
  return build_network(
      "mlp", {.sample_shape = {2, 2, 1}, .classes = 2, .input = {DType::kU8, {0.0F}, {1.0F}}});
}

// The fixture has a folder with checkpoints of a run with sgd, and two tasks that resume the run.
class AFolderOfCheckpoints : public testing::Test {
 protected:
  std::filesystem::path save(std::int64_t step, const std::string& optimizer = "sgd") {
    const auto path = checkpoint_path(folder_.path(), step);
    save_checkpoint(path, graph_, chief_.snapshot(), optimizer,
                    {.at = {.step = step, .samples = 64 * step}, .data = "digits", .seed = 1});
    return path;
  }
  TrainOptions options() const {
    TrainOptions options;
    options.strategy.optimizer.name = "sgd";
    options.loop.checkpoint_dir = folder_.path();
    options.resume = true;
    return options;
  }
  // Returns the error of the chief; "" when the chief starts.
  std::string error() {
    return message_of<FileError>([&] { start_run(options(), graph_, {.data = "digits"}, chief_); });
  }
  static void cut(const std::filesystem::path& path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  }
  static void flip(const std::filesystem::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('\x7b');
  }

  const TemporaryFolder folder_;
  const Graph graph_ = tiny_network();
  Messages messages_;
  OneOfSeveralTasks chief_{graph_, true, messages_};
  OneOfSeveralTasks other_{graph_, false, messages_};
};

TEST_F(AFolderOfCheckpoints, IsResumedFromTheNewestUndamagedOneOnAllTasks) {
  save(70);
  flip(save(80));
  cut(save(90));
  std::ofstream(checkpoint_path(folder_.path(), 100));
  testing::internal::CaptureStderr();
  for (OneOfSeveralTasks* task : {&chief_, &other_}) {
    EXPECT_EQ(start_run(options(), graph_, {.data = "digits"}, *task).progress.at.step, 70);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* step : {"080", "090", "100"}) {
    EXPECT_TRUE(contains(said, std::string(step) + ".safetensors is"));
  }
}

TEST_F(AFolderOfCheckpoints, KeepsUndamagedCheckpointsWhenItIsPruned) {
  save(70);
  cut(save(90));
  ASSERT_EQ(start_run(options(), graph_, {.data = "digits"}, chief_).progress.at.step, 70);
  const auto next = save(75);
  prune_checkpoints(folder_.path(), 1);
  EXPECT_EQ(newest_checkpoint(folder_.path()), next);
}

TEST_F(AFolderOfCheckpoints, NamesTheFaultOfTheNewestWhenAllAreDamaged) {
  flip(save(80));
  cut(save(90));
  const std::string said = error();
  EXPECT_TRUE(contains(said, "090.safetensors is cut short", "so are all older ones (1)"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder_.path(), 90))) << "left as it was";
}

TEST_F(AFolderOfCheckpoints, IsNotResumedWhenTheNewestBelongsToAnotherRun) {
  save(70);
  save(90, "momentum");
  EXPECT_THROW(start_run(options(), graph_, {.data = "digits"}, chief_), UsageError);
}

TEST_F(AFolderOfCheckpoints, IsNotResumedWithOtherSamplesOfTheSameName) {
  const Progress saved{
      .at = {.step = 70}, .data = "synthetic", .data_samples = "256 + 256 samples"};
  save_checkpoint(checkpoint_path(folder_.path(), 70), graph_, chief_.snapshot(), "sgd", saved);
  Progress fresh{.data = "synthetic", .data_samples = "512 + 512 samples"};
  EXPECT_TRUE(contains(message_of<UsageError>([&] { start_run(options(), graph_, fresh, chief_); }),
                       "256 + 256 samples", "512 + 512 samples"));
}

TEST_F(AFolderOfCheckpoints, IsResumedWithAnotherBatchAndRateWithANote) {
  save_checkpoint(checkpoint_path(folder_.path(), 70), graph_, chief_.snapshot(), "sgd",
                  {.at = {.step = 70},
                   .data = "digits",
                   .samples_per_update = 32,
                   .update_flags = "--clip-norm 1 --ema 0.9 --learning-rate 0.001"});
  const RunStart start = start_run(options(), graph_,
                                   {.data = "digits",
                                    .samples_per_update = 64,
                                    .update_flags = "--ema 0.9 --learning-rate 0.01"},
                                   chief_);
  ASSERT_EQ(start.notes.size(), 4U);
  EXPECT_EQ(start.notes[1], "64 samples per update from here on, 32 until the checkpoint");
  EXPECT_EQ(start.notes[2], "--clip-norm absent from here on, 1 until the checkpoint");
  EXPECT_EQ(start.notes[3], "--learning-rate 0.01 from here on, 0.001 until the checkpoint");
  EXPECT_EQ(start.progress.samples_per_update, 64) << "what the next checkpoint says";
}

TEST_F(AFolderOfCheckpoints, IsResumedWithoutTheDecisionsOfRulesThatAreNotGiven) {
  save_checkpoint(checkpoint_path(folder_.path(), 70), graph_, chief_.snapshot(), "sgd",
                  {.at = {.step = 70, .rules = {0.5, 70.0, 0.1}}, .data = "digits"});
  EXPECT_TRUE(start_run(options(), graph_, {.data = "digits"}, chief_).progress.at.rules.empty());
}

TEST_F(AFolderOfCheckpoints, IsNotResumedWithAnotherOrientationOfPictures) {
  save_checkpoint(checkpoint_path(folder_.path(), 70), graph_, chief_.snapshot(), "sgd",
                  {.at = {.step = 70}, .data = "images", .data_samples = "a"});
  EXPECT_TRUE(contains(message_of<UsageError>([&] {
                         start_run(options(), graph_,
                                   {.data = "images", .data_samples = "b", .apply_exif = 1},
                                   chief_);
                       }),
                       "was trained without --exif; leave it out"));
}

TEST(UpdateFlags, AreThoseThatDecideWhatAnUpdateComputes) {
  TrainOptions options;
  options.strategy.devices = {{DeviceKind::kCpu, 0}};
  options.strategy.optimizer.name = "momentum";
  const std::string constant = update_flags(options);
  for (const char* flag : {"--learning-rate ", "--ema absent", "--nesterov off", "--warmup-epochs ",
                           "--reduce-on-plateau absent"}) {
    EXPECT_TRUE(contains(constant, flag));
  }
  EXPECT_FALSE(contains(constant, "--epochs"));
  options.schedule.kind = ScheduleKind::kCosine;
  EXPECT_TRUE(contains(update_flags(options), "--epochs "));
}

TEST_F(AFolderOfCheckpoints, IsUsedInPlaceOfInitFromWithANote) {
  save(70);
  TrainOptions both = options();
  both.init_from = "weights.safetensors";
  const RunStart start = start_run(both, graph_, {.data = "digits"}, chief_);
  EXPECT_EQ(start.progress.at.step, 70);
  ASSERT_EQ(start.notes.size(), 2U);
  EXPECT_TRUE(contains(start.notes[1], "--init-from weights.safetensors is not used"));
}

class RunStartTest : public testing::TestWithParam<std::vector<ps::SampleRange>> {};

TEST_P(RunStartTest, SendsThePositionOfTheCheckpointToEveryTask) {
  const TemporaryFolder folder;
  const Graph graph = tiny_network();
  Messages messages;
  OneOfSeveralTasks chief(graph, true, messages);
  OneOfSeveralTasks other(graph, false, messages);
  const ps::DataPosition position{2, 640, GetParam()};
  save_checkpoint(checkpoint_path(folder.path(), 70), graph, chief.snapshot(), "sgd",
                  {.at = {.step = 70, .samples = 4480, .position = position, .rules = {0.5, 70.0}},
                   .data = "digits",
                   .seed = 1});

  TrainOptions options;
  options.strategy.optimizer.name = "sgd";
  options.loop.checkpoint_dir = folder.path();
  options.resume = true;
  options.loop.rules.keeps_best = true;
  for (OneOfSeveralTasks* task : {&chief, &other}) {
    const RunStart start = start_run(options, graph, {.data = "digits"}, *task);
    EXPECT_TRUE(start.resumed);
    EXPECT_EQ(start.progress.at.step, 70);
    EXPECT_EQ(start.progress.at.samples, 4480);
    EXPECT_EQ(start.progress.at.position, position);
    EXPECT_EQ(start.progress.at.rules, (std::vector<double>{0.5, 70.0}));
    ASSERT_EQ(task->begun().size(), 1U);
    EXPECT_EQ(task->begun().front().step, 70);
    EXPECT_EQ(task->begun().front().samples, 4480);
    EXPECT_EQ(task->begun().front().position, (ps::DataPosition{2, 640, GetParam()}));
  }
  EXPECT_TRUE(messages.empty()) << "everything was heard";
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutGaps, RunStartTest,
                         testing::Values(std::vector<ps::SampleRange>{},
                                         std::vector<ps::SampleRange>{{0, 960, 1024},
                                                                      {2, 64, 192}}));

DataSplits synthetic(const std::string& flag) { return open_dataset(flag, {.cache_dir = {}}); }

// Checkpoints have the text, so another one would keep them from being resumed.
TEST(TrainingSamples, AreDescribedWithAStableHash) {
  EXPECT_EQ(describe_training_samples(synthetic("synthetic:3x32x32:10:2000")),
            "2000 samples of [32, 32, 3] in 10 classes, 660491218492969431");
}

}  // namespace
}  // namespace syncopate
