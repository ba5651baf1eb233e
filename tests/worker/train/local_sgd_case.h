// Provides a small network, samples and a strategy that trains it step after step, for the tests of
// --strategy local-sgd.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"
#include "worker/train/train_step.h"

namespace syncopate {

using Values = std::vector<float>;
Values copy_of(const Tensor& tensor);
// Returns the relative L2 distance.
double distance(const Values& a, const Values& b);

struct Training {
  std::string strategy = "local-sgd";
  int replicas = 1;
  LocalUpdateOptions local{.sync_every = 3};
  std::string optimizer = "sgd";
  float learning_rate = 0.25F;
  std::int64_t global_batch = 12;
  int micro_batches = 1;
  bool has_dropout = false;
  bool has_batch_norm = false;
  double clip_norm = 0.0;
};

const DataSplits& data();
Graph network_of(const Training& setup);
StrategyOptions options_of(const Training& setup);
// Returns six samples, divided by their own number.
Batch test_batch();
// Returns the rows of outer_rules() for the mean displacement of all workers.
std::vector<OuterRuleRow> outer_rules_of_means();

// Returns the options of a row of outer_rules(). Gradients are summed in `steps_of_sums` steps if
// the row begins with sums.
LocalUpdateOptions with_outer(const OuterRuleRow& row, std::int64_t sync_every,
                              int steps_of_sums = 0);

constexpr std::int64_t kStepsPerEpoch = 42;  // with the default batch

// A strategy and its input, which train step after step.
class LocalRun {
 public:
  explicit LocalRun(const Training& setup)
      : setup_(setup),
        graph_(network_of(setup)),
        strategy_(make_strategy(options_of(setup), graph_)),
        input_(make_batch_source(
            *data().train,
            {.batch_size = setup.global_batch, .seed = 5, .shard = strategy_->input_shard()})) {}

  StepReport step(bool is_last = false) {
    const double epochs = static_cast<double>(steps_++) / static_cast<double>(kStepsPerEpoch);
    return train_step(*strategy_, *input_,
                      {.learning_rate = setup_.learning_rate,
                       .step = steps_,
                       .epochs = epochs,
                       .is_last = is_last});
  }
  // Trains `steps` steps. The last one ends the run.
  LocalRun& train(int steps) {
    for (int i = 1; i <= steps; ++i) step(i == steps);
    return *this;
  }
  // Trains the steps `first` to `last`. Each replica trains test_batch() in every step.
  void train_again(std::int64_t first, std::int64_t last, float learning_rate,
                   double epochs = 0.0) {
    const Batch batch = test_batch();
    for (std::int64_t step = first; step <= last; ++step) {
      strategy_->for_each_replica([&](Replica& replica) {
        replica_step(replica, batch,
                     {.learning_rate = learning_rate, .step = step, .epochs = epochs});
      });
    }
  }
  Values values(int replica = 0) const {
    return copy_of(strategy_->replicas()[static_cast<std::size_t>(replica)].arena->values());
  }
  bool all_hold_equal_values() const {
    for (int r = 1; r < setup_.replicas; ++r) {
      if (values(r) != values(0)) return false;
    }
    return true;
  }
  Strategy& strategy() { return *strategy_; }
  BatchSource& input() { return *input_; }
  void set_learning_rate(float rate) { setup_.learning_rate = rate; }

 private:
  Training setup_;
  const Graph graph_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<BatchSource> input_;
  std::int64_t steps_ = 0;
};

}  // namespace syncopate
