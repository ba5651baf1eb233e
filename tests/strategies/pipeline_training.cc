#include "tests/strategies/pipeline_training.h"

#include <algorithm>
#include <span>
#include <vector>

#include "models/base/random.h"
#include "models/zoo/zoo.h"
#include "strategies/input_shard.h"

namespace syncopate {

Graph small_network(const std::string& name) {
  NetworkInput input{.sample_shape = {28, 28, 1}, .classes = 4};
  if (name == "fcn") {
    input.sample_shape = {16, 16, 3};
    input.target_shape = {16, 16};
  }
  const auto channels = static_cast<std::size_t>(input.sample_shape.back());
  input.input = {.dtype = DType::kU8,
                 .mean = std::vector<float>(channels, 0.5F),
                 .stddev = std::vector<float>(channels, 0.25F)};
  return build_network(name, input);
}

Batch batch_for(const Graph& graph, std::int64_t samples) {
  Batch batch{.inputs = {},
              .target = {},
              .num_samples = samples,
              .loss_divisor = std::max<std::int64_t>(samples, 1)};
  Shape pixels = graph.input_shape();
  pixels.insert(pixels.begin(), samples);
  batch.inputs.push_back(make_host_tensor(pixels, DType::kU8));
  const std::span<std::uint8_t> x = batch.inputs[0].u8();
  const RandomStream noise(5, 7);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(noise.bits(i) >> 24);
  Shape target = graph.target_shape();
  target.insert(target.begin(), samples);
  batch.target = make_host_tensor(target, DType::kI32);
  const std::span<std::int32_t> labels = batch.target.i32();
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 4);
  batch.keys = make_host_tensor({samples}, DType::kI64);
  return batch;
}

StrategyOptions pipeline_options(const std::string& strategy, int stages, int micro_batches) {
  StrategyOptions options;
  options.name = strategy;
  options.seed = 3;
  options.batch_size_per_replica = kPipelineBatch;
  options.stages = stages;
  options.micro_batches = micro_batches;
  options.optimizer.name = "momentum";
  return options;
}

double train_steps(Strategy& strategy, const Batch& batch, int steps) {
  Replica& replica = strategy.replicas().front();
  double loss = 0.0;
  for (int step = 1; step <= steps; ++step) {
    replica.variables->pull({.learning_rate = 0.05F, .step = step});
    const auto wait = [&](BucketId bucket) { replica.variables->wait_values(bucket); };
    const int last = replica.micro_batches - 1;
    StepReport report;
    for (int part = 0; part < last; ++part) {
      const BatchShare share = share_of_replica(batch.num_samples, part, replica.micro_batches);
      report.scores += replica.model->forward(batch.rows(share.begin, share.end), wait);
      replica.model->accumulate();
    }
    const BatchShare share = share_of_replica(batch.num_samples, last, replica.micro_batches);
    report.scores += replica.model->forward(batch.rows(share.begin, share.end), wait);
    replica.model->backward([&](BucketId bucket) { replica.variables->push(bucket, report); });
    loss += replica.variables->commit().scores.loss;
  }
  return loss;
}

bool are_equal(const Tensor& left, const Tensor& right) {
  return std::ranges::equal(left.bytes(), right.bytes());
}

}  // namespace syncopate
