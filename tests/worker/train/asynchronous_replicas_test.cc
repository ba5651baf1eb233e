// Tests several asynchronous replicas of one task.
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/worker/train/asynchronous_case.h"

namespace syncopate {
namespace {

// IdleVariables train nothing, because the test is about the objects that the replicas share.
class IdleVariables final : public VariableStore {
 public:
  void pull(const UpdateStep& /*update*/) override {}
  void wait_values(BucketId /*bucket*/) override {}
  void push(BucketId /*bucket*/, const StepReport& report) override { mine_ = report; }
  StepReport commit() override { return mine_; }
  CommunicationTimes times() const override { return {}; }

 private:
  StepReport mine_;
};

class TwoReplicas : public testing::Test {
 protected:
  TwoReplicas() { first_.copy = second_.copy = before_; }

  // Makes two replicas, sets `before` to a copy of their snapshot, and then replaces their
  // variables by IdleVariables, which have no values to copy.
  static std::unique_ptr<Strategy> make_two(const Graph& graph, std::optional<Snapshot>& before) {
    StrategyOptions options;
    options.name = "mirrored";
    options.replicas = 2;
    options.batch_size_per_replica = AsynchronousCase::kBatch;
    auto two = make_strategy(options, graph);
    before = deep_copy(two->snapshot());
    for (Replica& replica : two->replicas()) replica.variables = std::make_unique<IdleVariables>();
    return two;
  }

  AsynchronousCase run_;
  std::optional<Snapshot> before_;
  ScriptedStrategy strategy_{make_two(run_.graph, before_)};
  ScriptedJob first_{strategy_, {{0, 0, 16}}, 0};
  ScriptedJob second_{strategy_, {{0, 16, 32}, {0, 32, 48}}, 1};
};

TEST_F(TwoReplicas, TrainTheirLeasesAndTheLastAssignedReplicaReports) {
  first_.is_reporter_in_script = false;
  second_.assignments_at_end = {kLast};
  const TrainOutcome outcome = run_.train_apart(strategy_, {&first_, &second_});
  EXPECT_EQ(first_.events, strings({"step 0:0"}));
  EXPECT_EQ(second_.events, strings({"step 0:16", "step 0:32", "read 7", "done 7"}));
  EXPECT_TRUE(outcome.test);
  EXPECT_EQ(outcome.progress.at.step, 2) << "as the second one's job counts";
}

TEST_F(TwoReplicas, ReceiveARequestToStopThroughTheFirst) {
  run_.stop = [] { return "SIGUSR1"; };
  first_.is_reporter_in_script = false;
  std::promise<void> asked;
  first_.when_asked_to_stop = [&] { asked.set_value(); };
  const std::shared_future<void> heard = asked.get_future().share();
  second_.before_lease = [heard] {
    EXPECT_EQ(heard.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  };
  const TrainOutcome outcome = run_.train_apart(strategy_, {&first_, &second_});
  EXPECT_EQ(first_.events, strings({"stop 2", "step 0:0"}));
  EXPECT_EQ(second_.events, strings({"stop 2", "step 0:16"}));
  EXPECT_EQ(outcome.stopped_by, "SIGUSR1");
}

}  // namespace
}  // namespace syncopate
