#include "bench/step/workload.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/harness/measure.h"
#include "deploy/cli/flag.h"
#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/zoo/zoo.h"
#include "worker/run/run_data.h"
#include "worker/train/train_step.h"

namespace syncopate::bench {
namespace {

constexpr int kWarmUpSteps = 3;
constexpr std::uint64_t kSeed = 1;
// The number of random batches to train on in turn, as NUM_BATCHES of the peer torch_step.py. It is
// large enough that a step does not find its samples in the nearest cache.
constexpr std::size_t kNumBatches = 8;
constexpr std::size_t kNumLargeBatches = 2;
constexpr std::int64_t kLargeBytes = std::int64_t{16} << 20;

// Returns a few random batches over and over. Each has batch_size samples per replica of this task.
class SyntheticBatches final : public BatchSource {
 public:
  SyntheticBatches(const Workload& workload, const Graph& graph, const InputShard& shard) {
    const std::int64_t samples = workload.batch_size * shard.count;
    const auto of_samples = [&](Shape shape) {
      shape.insert(shape.begin(), samples);
      return shape;
    };
    const Shape shape = of_samples(graph.input_shape());
    const std::size_t batches = num_elements(shape) < kLargeBytes ? kNumBatches : kNumLargeBatches;
    for (std::size_t b = 0; b < batches; ++b) {
      Batch batch{{make_host_tensor(shape, DType::kU8)},
                  make_host_tensor(of_samples(graph.target_shape()), DType::kI32),
                  samples,
                  workload.batch_size * shard.total};
      const RandomStream pixels(kSeed, 2 * b);
      std::uint64_t index = 0;
      for (std::uint8_t& pixel : batch.inputs[0].u8()) {
        pixel = static_cast<std::uint8_t>(pixels.bits(index++));
      }
      const RandomStream labels(kSeed, 2 * b + 1);
      index = 0;
      for (std::int32_t& label : batch.target.i32()) {
        label = static_cast<std::int32_t>(
            labels.below(index++, static_cast<std::uint32_t>(workload.classes)));
      }
      batch.keys = make_host_tensor({samples}, DType::kI64);
      const RandomStream keys(kSeed, 2 * kNumBatches + b);
      index = 0;
      for (std::byte& byte : batch.keys.bytes()) byte = static_cast<std::byte>(keys.bits(index++));
      batches_.push_back(std::move(batch));
    }
  }

  const Batch& next() override { return batches_[num_taken_++ % batches_.size()]; }
  ps::DataPosition position() const override { return {}; }
  std::int64_t batches_per_epoch() const override {
    return static_cast<std::int64_t>(batches_.size());
  }
  InputCounters counters() const override { return {0.0, static_cast<std::int64_t>(num_taken_)}; }

 private:
  std::vector<Batch> batches_;
  std::size_t num_taken_ = 0;
};

std::unique_ptr<BatchSource> make_batches(const Workload& workload, const Graph& graph,
                                          const InputShard& shard) {
  if (!workload.data) return std::make_unique<SyntheticBatches>(workload, graph, shard);
  return make_batch_source(*workload.data->train, {.batch_size = workload.batch_size * shard.total,
                                                   .seed = kSeed,
                                                   .threads = workload.input_threads,
                                                   .shard = shard});
}

void require_finite(double loss, const std::string& model) {
  if (std::isfinite(loss)) return;
  throw DivergenceError(model + ": the loss is not a number; choose a smaller --learning-rate");
}

}  // namespace

Graph build_graph(const Workload& workload) {
  if (workload.data)
    return network_for_data(workload.model, workload.data_flag, *workload.data, {});
  if (workload.sample_shape.empty()) {
    throw UsageError("--model " + workload.model +
                     ": a network file does not say what a sample is; give --data as well");
  }
  const auto channels = static_cast<std::size_t>(workload.sample_shape.back());
  return build_network(workload.model, {.sample_shape = workload.sample_shape,
                                        .classes = workload.classes,
                                        .input = {.dtype = DType::kU8,
                                                  .mean = std::vector<float>(channels, 0.5F),
                                                  .stddev = std::vector<float>(channels, 0.25F)},
                                        .target_shape = workload.target_shape});
}

namespace {

const std::array<Workload, 10>& workloads() {
  static const std::array<Workload, 10> kWorkloads = {{
      {"mnist-cnn", {28, 28, 1}, 64, "adam", 200},
      {"mlp", {28, 28, 1}, 64, "adam", 1000},
      {"resnet20", {32, 32, 3}, 128, "momentum", 8},
      {"resnet56", {32, 32, 3}, 128, "momentum", 3},
      {"resnet50", {224, 224, 3}, 256, "momentum", 1, 1000},
      {"resnet50-v1", {224, 224, 3}, 256, "momentum", 1, 1000},
      {"mobilenet-v2", {224, 224, 3}, 256, "momentum", 1, 1000},
      {"vgg16", {224, 224, 3}, 64, "momentum", 1, 1000},
      {"fcn", {64, 64, 4}, 64, "adam", 20, 2, {64, 64}},
      {"unet", {256, 256, 3}, 4, "adam", 1, 2, {256, 256}},
  }};
  return kWorkloads;
}

}  // namespace

std::vector<std::string_view> workload_models() {
  std::vector<std::string_view> models;
  for (const Workload& row : workloads()) models.emplace_back(row.model);
  return models;
}

std::vector<std::string_view> workload_models_and_files() {
  std::vector<std::string_view> models = workload_models();
  models.emplace_back("file:NET.json");
  return models;
}

Workload find_workload(std::string_view model) {
  if (model.starts_with(kNetworkFile)) {
    return {.model = std::string(model),
            .sample_shape = {},
            .batch_size = 64,
            .optimizer = "momentum",
            .steps_per_round = 8};
  }
  require_name("--model", std::string(model), workload_models(), why_no_network);
  return *std::ranges::find(workloads(), model, &Workload::model);
}

WorkloadTraining::WorkloadTraining(const Workload& workload, const TrainingOptions& options)
    : workload_(workload),
      options_(options),
      graph_(build_graph(workload)),
      strategy_(make_strategy({.name = options.strategy,
                               .seed = kSeed,
                               .batch_size_per_replica = workload.batch_size,
                               .lanes = options.lanes,
                               .replicas = options.replicas,
                               .devices = {options.device},
                               .precision = options.precision,
                               .plan_file = options.plan_file,
                               .optimizer = {.name = workload.optimizer},
                               .membership = options.membership},
                              graph_)),
      batches_(make_batches(workload_, graph_, strategy_->input_shard())) {
  if (!options.fuse || !options.winograd) {  // only benchmarks disable fusion or Winograd
    for (Replica& replica : strategy_->replicas()) {
      replica.model.reset();
      replica.model = replica.backend->compile(graph_, *replica.arena, *replica.state,
                                               {.mode = Mode::kTrain,
                                                .batch_size = workload.batch_size,
                                                .fuse = options.fuse,
                                                .winograd = options.winograd});
    }
  }
  run(kWarmUpSteps);
}

UpdateStep WorkloadTraining::next_update() noexcept {
  return {.learning_rate = static_cast<float>(options_.learning_rate), .step = ++step_};
}

std::vector<double> WorkloadTraining::run(int steps) {
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(steps));
  StepReport report = train_step(*strategy_, *batches_, next_update());
  for (int i = 0; i < steps; ++i) {
    const auto start = SteadyClock::now();
    report = train_step(*strategy_, *batches_, next_update());
    seconds.push_back(seconds_since(start));
  }
  require_finite(report.scores.loss, workload_.model);
  return seconds;
}

StepParts WorkloadTraining::profile(int steps) {
  Replica& replica = strategy_->replicas().front();
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> update;
  std::vector<BucketId> buckets;
  for (int i = 0; i < steps; ++i) {
    const Batch& batch = batches_->next();
    replica.variables->pull(next_update());
    auto start = SteadyClock::now();
    const Scores scores = replica.model->forward(batch, [](BucketId) {});
    require_finite(scores.loss, workload_.model);
    forward.push_back(seconds_since(start));
    buckets.clear();
    start = SteadyClock::now();
    replica.model->backward([&](BucketId bucket) { buckets.push_back(bucket); });
    backward.push_back(seconds_since(start));
    // The update begins before the first push, because a strategy may apply a bucket at its push.
    start = SteadyClock::now();
    for (const BucketId bucket : buckets) replica.variables->push(bucket, {.scores = scores});
    replica.variables->commit();
    update.push_back(seconds_since(start));
  }
  return {median(forward), median(backward), median(update)};
}

std::vector<GroupTime> WorkloadTraining::time_groups(int steps) {
  Replica& replica = strategy_->replicas().front();
  std::vector<std::vector<GroupTime>> all;  // by step
  for (int i = 0; i < steps; ++i) all.push_back(replica.model->time_groups(batches_->next()));
  std::vector<GroupTime> medians = all.front();
  for (std::size_t g = 0; g < medians.size(); ++g) {
    std::vector<double> forward;
    std::vector<double> backward;
    for (const std::vector<GroupTime>& step : all) {
      forward.push_back(step[g].forward_seconds);
      backward.push_back(step[g].backward_seconds);
    }
    medians[g].forward_seconds = median(forward);
    medians[g].backward_seconds = median(backward);
  }
  return medians;
}

CommunicationTimes WorkloadTraining::communication() const {
  return strategy_->replicas().front().variables->times();
}

std::string WorkloadTraining::description() const {
  return strategy_->replicas().front().backend->description();
}

}  // namespace syncopate::bench
