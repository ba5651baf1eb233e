#include "bench/virtual_clock/virtual_workers.h"

#include <algorithm>

#include "strategies/input_shard.h"

namespace syncopate::bench {

VirtualWorkers::VirtualWorkers(const VirtualPlan& plan, VirtualDevice& device)
    : device_(device),
      micro_batches_(plan.strategy.micro_batches),
      states_(static_cast<std::size_t>(plan.workers),
              std::vector<float>(device.state().begin(), device.state().end())),
      samples_(states_.size()),
      samples_in_statistics_(states_.size()) {}

Batch VirtualWorkers::share_of(const Batch& whole, int worker) const {
  const BatchShare share = share_of_replica(whole.loss_divisor, worker, count());
  return whole.rows(share.begin, share.end);
}

Scores VirtualWorkers::train(int worker, const Batch& batch) {
  const auto w = static_cast<std::size_t>(worker);
  const Scores scores = train_parts(batch, states_[w]);
  samples_[w] += scores.num_samples;
  samples_in_statistics_[w] += scores.num_samples;
  return scores;
}

Scores VirtualWorkers::train_parts(const Batch& batch, std::span<float> state) {
  if (micro_batches_ == 1) return device_.train(batch, state);
  const std::span<float> gradients = device_.gradients().f32();
  Scores scores;
  for (int m = 0; m < micro_batches_; ++m) {
    const BatchShare part = share_of_replica(batch.num_samples, m, micro_batches_);
    scores += device_.train(batch.rows(part.begin, part.end), state);
    if (m == 0) {
      sum_.assign(gradients.begin(), gradients.end());
    } else {
      for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] = gradients[i] + sum_[i];
    }
  }
  std::ranges::copy(sum_, gradients.begin());
  return scores;
}

void VirtualWorkers::average_statistics() {
  double total = 0.0;
  for (const std::int64_t samples : samples_in_statistics_) total += static_cast<double>(samples);
  if (count() == 1 || states_.front().empty() || total == 0.0) return;
  for (std::size_t i = 0; i < states_.front().size(); ++i) {
    double sum = 0.0;
    for (std::size_t w = 0; w < states_.size(); ++w) {
      sum += static_cast<double>(samples_in_statistics_[w]) * static_cast<double>(states_[w][i]);
    }
    const auto mean = static_cast<float>(sum / total);
    for (std::vector<float>& state : states_) state[i] = mean;
  }
  std::ranges::fill(samples_in_statistics_, 0);
}

}  // namespace syncopate::bench
