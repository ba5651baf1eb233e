#include "deploy/run_start.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/worker/temporary_folder.h"

namespace syncopate {
namespace {

using Messages = std::deque<std::vector<std::byte>>;

// One task of several: what the chief broadcasts is kept for the others, who take it in turn.
class OneOfSeveralTasks final : public Strategy {
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
  Snapshot snapshot() override { return values_; }
  void restore(const Snapshot& /*saved*/) override { ++restored_; }
  void begin(const StartPoint& start) override {
    EXPECT_EQ(restored_, 1) << "the variables hold what training starts from";
    begun_.push_back(start);
  }
  void abort(std::string_view /*reason*/) noexcept override {}

  const std::vector<StartPoint>& begun() const { return begun_; }

 private:
  bool is_chief_;
  Messages& messages_;
  Snapshot values_;
  int restored_ = 0;
  std::vector<StartPoint> begun_;
};

class RunStartTest : public testing::TestWithParam<std::vector<ps::SampleRange>> {};

TEST_P(RunStartTest, TellsEveryTaskWhereTheCheckpointStands) {
  const TemporaryFolder folder;
  const Graph graph = build_network(
      "mlp", {.sample_shape = {2, 2, 1}, .classes = 2, .input = {DType::kU8, {0.0F}, {1.0F}}});
  Messages messages;
  OneOfSeveralTasks chief(graph, true, messages);
  OneOfSeveralTasks other(graph, false, messages);
  const DataPosition position{2, 640, GetParam()};
  save_checkpoint(checkpoint_path(folder.path(), 70), graph, chief.snapshot(), "sgd",
                  {.step = 70, .samples = 4480, .position = position, .data = "digits", .seed = 1});

  TrainOptions options;
  options.strategy.optimizer.name = "sgd";
  options.loop.checkpoint_dir = folder.path();
  options.resume = true;
  for (OneOfSeveralTasks* task : {&chief, &other}) {
    const RunStart start = start_run(options, graph, "digits", *task);
    EXPECT_TRUE(start.resumed);
    EXPECT_EQ(start.progress.step, 70);
    EXPECT_EQ(start.progress.samples, 4480);
    EXPECT_EQ(start.progress.position, position);
    ASSERT_EQ(task->begun().size(), 1U);
    EXPECT_EQ(task->begun().front().step, 70);
    EXPECT_EQ(task->begun().front().samples, 4480);
    EXPECT_EQ(task->begun().front().position, (ps::LedgerPosition{2, 640, GetParam()}));
  }
  EXPECT_TRUE(messages.empty()) << "everything was heard";
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutGaps, RunStartTest,
                         testing::Values(std::vector<ps::SampleRange>{},
                                         std::vector<ps::SampleRange>{{0, 960, 1024},
                                                                      {2, 64, 192}}));

}  // namespace
}  // namespace syncopate
