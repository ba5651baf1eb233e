// One task of a job of local-sgd that kills itself in a given phase of a given round.
// round_kill_test.cc starts it. Prints the hash of the weights and the number of samples at the
// end.
//
//   round_task INDEX HOST:PORT LISTENING_DESCRIPTOR CHECKPOINT_DIR TRANSPORT PHASE ROUND
//
// PHASE is step, gather, gathered, sum, outer, checkpoint or none. The job has two tasks.
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "strategies/cluster/membership.h"
#include "strategies/local_updates/round_report.h"
#include "worker/run/run_start.h"
#include "worker/train/train_loop.h"

namespace syncopate {
namespace {

constexpr std::int64_t kSyncEvery = 3;
constexpr std::int64_t kBatch = 12;

void die() { (void)raise(SIGKILL); }

// The time of the kill: in the round of this number, counted from 1.
struct Kill {
  std::string phase;
  int round = 0;
};

// The collective of the replica until the kill.
class DyingCollective final : public Collective {
 public:
  DyingCollective(std::unique_ptr<Collective> inner, Kill kill)
      : inner_(std::move(inner)), kill_(std::move(kill)) {}

  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  const Tensor& block() const noexcept override { return inner_->block(); }
  WorkId all_reduce(const Tensor& tensor, std::int64_t index) override {
    is_summed_ = true;
    const WorkId work = inner_->all_reduce(tensor, index);
    die_in("sum");
    return work;
  }
  void wait(WorkId work) override { inner_->wait(work); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const bool is_report = mine.size() == sizeof(RoundReport);
    if (is_report) {
      ++round_;
      is_summed_ = false;
      die_in("gather");
    } else if (is_summed_) {
      die_in("outer");  // the statistics are gathered after the outer step
    }
    inner_->all_gather(mine, all);
    if (is_report) die_in("gathered");
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    die_in("checkpoint");  // the optimizer state of the workers goes to the chief
    inner_->broadcast(bytes, root);
  }
  void abort(std::string_view reason) noexcept override { inner_->abort(reason); }
  CommunicationTimes times() const noexcept override { return inner_->times(); }

 private:
  void die_in(const char* phase) const {
    if (kill_.phase == phase && kill_.round == round_) die();
  }

  const std::unique_ptr<Collective> inner_;
  const Kill kill_;
  int round_ = 0;
  bool is_summed_ = false;  // whether sums have begun in the round
};

Graph network_of(const DataSplits& data) {
  GraphBuilder build("small");
  NodeId x = build.input(data.train->spec().inputs[0].shape, {DType::kU8, data.mean, data.stddev});
  x = build.flatten(build.relu(build.batch_norm(build.conv2d(x, "conv", 3, {.pad = 1}), "bn")));
  return build.finish(build.dense(x, "fc", 4));
}

TrainOptions options_of(const std::vector<std::string>& arguments) {
  TrainOptions options;
  options.data = "synthetic:8x8x1:4:120";
  StrategyOptions& strategy = options.strategy;
  strategy.name = "local-sgd";
  strategy.batch_size_per_replica = kBatch / 2;
  strategy.optimizer.name = "momentum";
  strategy.local = {.sync_every = kSyncEvery, .outer = "slowmo"};
  strategy.collective = "ring";
  strategy.transport = arguments.at(4) == "tcp" ? Transport::kTcp : Transport::kShm;
  options.cluster.source = "test";
  options.cluster.index = std::stoi(arguments.at(0));
  options.cluster.world_size = 2;
  options.cluster.nonce = "round_kill_test";
  options.cluster.rendezvous.endpoint = parse_endpoint(arguments.at(1), "HOST:PORT");
  if (options.cluster.index == 0) {
    options.cluster.rendezvous.descriptor = std::stoi(arguments.at(2));
  }
  options.loop.total_steps = 20;
  options.loop.eval_every_epochs = 0;
  options.loop.checkpoint_dir = arguments.at(3);
  options.loop.checkpoint_every_steps = kSyncEvery;
  options.resume = true;
  return options;
}

// Ends the waits of the strategy when the other task is lost.
class StrategyWaker {
 public:
  StrategyWaker(Membership& membership, Strategy& strategy) : membership_(membership) {
    membership_.on_failure([&](const std::string& reason) { strategy.abort(reason); });
  }
  StrategyWaker(const StrategyWaker&) = delete;
  StrategyWaker& operator=(const StrategyWaker&) = delete;
  ~StrategyWaker() { membership_.on_failure({}); }

 private:
  Membership& membership_;
};

void train_rounds(TrainOptions& options, Membership& membership, const Kill& kill) {
  const DataSplits data = open_dataset(options.data, {.cache_dir = {}, .seed = 3});
  const Graph graph = network_of(data);
  options.strategy.membership = &membership;
  const auto strategy = make_strategy(options.strategy, graph);
  Replica& replica = strategy->replicas().front();
  replica.collective = std::make_unique<DyingCollective>(std::move(replica.collective), kill);
  const StrategyWaker waker(membership, *strategy);
  const RunStart start =
      start_run(options, graph, fresh_progress(options, data, kBatch), *strategy);
  Evaluator evaluator(*strategy, graph, *data.test, {});
  const auto input = make_batch_source(
      *data.train, {.batch_size = kBatch, .seed = 1, .shard = strategy->input_shard()},
      start.progress.at.position);
  const auto metrics = make_metrics_writer("", false);
  const auto display = make_silent_display();
  std::int64_t steps = 0;
  const StopPoll stop = [&]() -> std::optional<std::string_view> {
    // In the second step of the round.
    if (kill.phase == "step" && ++steps == (kill.round - 1) * kSyncEvery + 2) die();
    return std::nullopt;
  };
  const TrainOutcome outcome = train({.graph = graph,
                                      .strategy = *strategy,
                                      .input = *input,
                                      .dataset_size = data.train->size(),
                                      .global_batch = kBatch,
                                      .schedule = Schedule({.learning_rate = 0.05}),
                                      .optimizer = options.strategy.optimizer.name,
                                      .evaluator = evaluator,
                                      .metrics = *metrics,
                                      .display = *display,
                                      .stop = stop,
                                      .membership = &membership},
                                     options.loop, start.progress);
  strategy->leave();
  std::cout << outcome.weights_hash << " " << outcome.progress.at.samples << '\n';
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::unique_ptr<syncopate::Membership> membership;
  try {
    syncopate::TrainOptions options = syncopate::options_of(arguments);
    membership =
        syncopate::join_cluster(options.cluster, {.rendezvous_timeout = std::chrono::seconds(30)});
    syncopate::train_rounds(options, *membership, {arguments.at(5), std::stoi(arguments.at(6))});
    return 0;
  } catch (const std::exception& error) {
    if (membership != nullptr) membership->fail(error.what());
    std::cerr << error.what() << '\n';
  }
  return 1;
}
