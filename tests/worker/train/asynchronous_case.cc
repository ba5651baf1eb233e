#include "tests/worker/train/asynchronous_case.h"

#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

Graph network(const std::string& model, const DataSplits& data) {
  return build_network(model, {.sample_shape = data.train->spec().inputs[0].shape,
                               .classes = data.train->spec().num_classes,
                               .input = {DType::kU8, data.mean, data.stddev}});
}

}  // namespace

AsynchronousCase::AsynchronousCase(const std::string& model, const std::string& optimizer_name,
                                   ScheduleOptions rates)
    : data(open_dataset("synthetic:3x8x8:4:84", {.cache_dir = {}, .seed = 3})),
      graph(network(model, data)),
      optimizer(optimizer_name),
      schedule(std::move(rates)) {}

std::unique_ptr<Strategy> AsynchronousCase::make_one_device() const {
  StrategyOptions strategy;
  strategy.seed = start.seed;
  strategy.batch_size_per_replica = kBatch;
  strategy.optimizer.name = optimizer;
  return make_strategy(strategy, graph);
}

std::unique_ptr<LeasedBatchSource> AsynchronousCase::make_input(ScriptedJob& job) const {
  return std::make_unique<LeasedBatchSource>(
      *data.train,
      LeasedInputOptions{.input = {.batch_size = kBatch, .seed = start.seed, .prefetch = 0}},
      LeaseSource{.next_lease = [&job] { return job.next_lease(); }, .stop = [] {}});
}

Evaluation AsynchronousCase::evaluate(Strategy& strategy) const {
  Evaluator evaluator(strategy, graph, *data.test, evaluation);
  return *evaluator.run([] { return std::nullopt; });
}

TrainOutcome AsynchronousCase::train_synchronously(Strategy& strategy, const Progress& from) {
  Evaluator evaluator(strategy, graph, *data.test, evaluation);
  const auto input = make_batch_source(
      *data.train, {.batch_size = kBatch, .seed = from.seed, .shard = strategy.input_shard()},
      from.at.position);
  return train({.graph = graph,
                .strategy = strategy,
                .input = *input,
                .dataset_size = data.train->size(),
                .global_batch = kBatch,
                .schedule = schedule,
                .optimizer = optimizer,
                .bad_samples = bad_samples,
                .evaluator = evaluator,
                .metrics = metrics,
                .display = display,
                .stop = stop},
               options, from);
}

TrainOutcome AsynchronousCase::train_apart(ScriptedStrategy& strategy,
                                           std::vector<ScriptedJob*> jobs) {
  strategy.jobs.assign(jobs.begin(), jobs.end());
  std::vector<std::unique_ptr<LeasedBatchSource>> inputs;
  std::vector<AsynchronousWorker> workers;
  for (ScriptedJob* job : jobs) {
    inputs.push_back(make_input(*job));
    workers.push_back({*inputs.back(), metrics, display, kept});
  }
  return train_asynchronously({.graph = graph,
                               .strategy = strategy,
                               .workers = workers,
                               .dataset_size = data.train->size(),
                               .batch_size = kBatch,
                               .samples_per_update = kBatch,
                               .watched = *data.test,
                               .evaluation = evaluation,
                               .schedule = schedule,
                               .optimizer = optimizer,
                               .stop = stop},
                              options, start);
}

}  // namespace syncopate
