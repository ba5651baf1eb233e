#include "tests/worker/train/local_sgd_case.h"

#include <cmath>

namespace syncopate {

Values copy_of(const Tensor& tensor) { return {tensor.f32().begin(), tensor.f32().end()}; }

double distance(const Values& a, const Values& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

const DataSplits& data() {
  static const DataSplits kData =
      open_dataset("synthetic:8x8x1:4:512", {.cache_dir = {}, .seed = 3});
  return kData;
}

Graph network_of(const Training& setup) {
  GraphBuilder build("small");
  NodeId x =
      build.input(data().train->spec().inputs[0].shape, {DType::kU8, data().mean, data().stddev});
  x = build.conv2d(x, "conv", 3, {.pad = 1});
  if (setup.has_batch_norm) x = build.batch_norm(x, "bn");
  x = build.flatten(build.relu(x));
  if (setup.has_dropout) x = build.dropout(x, "drop", {.rate = 0.5});
  return build.finish(build.dense(x, "fc", 4));
}

StrategyOptions options_of(const Training& setup) {
  StrategyOptions options;
  options.name = setup.strategy;
  options.seed = 5;
  options.replicas = setup.replicas;
  options.bucket_bytes = 256;  // makes several buckets
  options.batch_size_per_replica = share_of_replica(setup.global_batch, 0, setup.replicas).end;
  options.micro_batches = setup.micro_batches;
  options.optimizer.name = setup.optimizer;
  options.clip_norm = setup.clip_norm;
  options.local = setup.local;
  return options;
}

std::vector<OuterRuleRow> outer_rules_of_means() {
  std::vector<OuterRuleRow> rows;
  for (const OuterRuleRow& row : outer_rules()) {
    if (!row.has_number) rows.push_back(row);
  }
  return rows;
}

LocalUpdateOptions with_outer(const OuterRuleRow& row, std::int64_t sync_every, int steps_of_sums) {
  LocalUpdateOptions options{.sync_every = sync_every, .outer = std::string(row.name)};
  if (row.begins_with_sums) {
    options.local_from = static_cast<double>(steps_of_sums) / static_cast<double>(kStepsPerEpoch);
  }
  return options;
}

Batch test_batch() {
  static const auto kInput = make_batch_source(*data().train, {.batch_size = 6, .seed = 7});
  static const Batch kBatch = kInput->next();
  return kBatch;
}

}  // namespace syncopate
