#include "tests/ps/shard/shard_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "models/base/denormals.h"
#include "models/base/random.h"
#include "models/tensor/sums.h"

namespace syncopate::ps {
namespace {

std::vector<float> random_floats(std::int64_t count, std::uint64_t stream) {
  const RandomStream random(11, stream);
  std::vector<float> floats;
  floats.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [fraction, exponent, sign, unused] = random.block(static_cast<std::uint64_t>(i));
    const float size = std::ldexp(static_cast<float>(fraction), -32);
    // Two of three random elements have similar magnitudes, so that the order of additions changes
    // the sum.
    const int shift = exponent % 3 == 0 ? static_cast<int>(exponent / 3 % 140) : 0;
    floats.push_back(std::ldexp(sign % 2 == 0 ? size : -size, -shift));
  }
  return floats;
}

std::vector<Tensor> zeroed_slots(const Optimizer& optimizer, const Shape& shape) {
  std::vector<Tensor> slots;
  for (std::size_t i = 0; i < optimizer.slot_names().size(); ++i) {
    slots.push_back(make_host_tensor(shape, DType::kF32));
  }
  return slots;
}

// Adds the workers' gradients of one element; this defines the order of additions.
float sum_at(std::span<const Gradient> gradients, std::int64_t index) {
  const auto n = static_cast<std::int64_t>(gradients.size());
  std::int64_t worker = (index / 16384 + 1) % n;
  float sum = gradients[static_cast<std::size_t>(worker)][static_cast<std::size_t>(index)];
  for (std::int64_t added = 1; added < n; ++added) {
    worker = (worker + 1) % n;
    sum += gradients[static_cast<std::size_t>(worker)][static_cast<std::size_t>(index)];
  }
  return sum;
}

}  // namespace

ArenaLayout small_layout() {
  return ArenaLayout({{.name = "conv.weight", .shape = {20011}},
                      {.name = "norm.weight", .shape = {7}, .decays = false},
                      {.name = "dense.weight", .shape = {150, 220}},
                      {.name = "dense.bias", .shape = {220}, .decays = false},
                      {.name = "scale", .shape = {1}}});
}

std::vector<Bucket> small_buckets() { return plan_buckets(small_layout(), std::int64_t{256}); }

Tensor first_values() {
  const Tensor values = make_host_tensor({small_layout().total()}, DType::kF32);
  std::ranges::copy(random_floats(values.num_elements(), 0), values.f32().begin());
  return values;
}

OptimizerOptions decaying(const std::string& name) {
  OptimizerOptions options{.name = name, .weight_decay = 0.01};
  if (name == "nesterov") {
    options.name = "momentum";
    options.nesterov = true;
  }
  return options;
}

UpdateStep update_step(std::int64_t step) {
  return {.learning_rate = 0.1F / static_cast<float>(step), .step = step};
}

std::vector<Gradient> random_gradients(int workers, std::int64_t step) {
  std::vector<Gradient> gradients;
  gradients.reserve(static_cast<std::size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    gradients.push_back(
        random_floats(small_layout().total(), static_cast<std::uint64_t>(step * 100 + worker)));
  }
  return gradients;
}

std::unique_ptr<Shard> make_shard(const OptimizerOptions& options, int workers,
                                  const ConsistencyOptions& consistency) {
  auto shard = std::make_unique<Shard>(small_layout(), small_buckets(), make_optimizer(options),
                                       consistency, first_values());
  for (int worker = 0; worker < workers; ++worker) shard->join(worker, 1, 0);
  return shard;
}

std::span<const float> part_of(const Gradient& gradient, Bucket bucket) {
  return std::span(gradient).subspan(static_cast<std::size_t>(bucket.begin),
                                     static_cast<std::size_t>(bucket.end - bucket.begin));
}

EncodedGradient as_f32(std::span<const float> gradient) {
  return {.codec = Codec::kF32,
          .num_elements = static_cast<std::int64_t>(gradient.size()),
          .bytes = std::as_bytes(gradient)};
}

PushRequest sync_push(int worker, BucketId bucket, std::uint64_t version,
                      std::span<const float> gradient, float learning_rate) {
  return {.id = {.worker = worker, .incarnation = 1, .sequence = version},
          .bucket = bucket,
          .version = version,
          .learning_rate = learning_rate,
          .gradient = as_f32(gradient),
          .values = {}};
}

void run_step(Shard& shard, std::span<const Gradient> gradients, const UpdateStep& step,
              std::int64_t piece_elements) {
  for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
    const auto bucket = static_cast<BucketId>(b);
    const std::uint64_t version = shard.view(bucket).version;
    for (std::size_t worker = 0; worker < gradients.size(); ++worker) {
      shard.push(sync_push(static_cast<int>(worker), bucket, version,
                           part_of(gradients[worker], shard.buckets()[b]), step.learning_rate));
    }
    std::vector<ShardEvent> events;
    while (const std::optional<Piece> piece = shard.claim(bucket, piece_elements)) {
      shard.update(*piece);
      shard.take_events(events);
    }
  }
}

Reference::Reference(const OptimizerOptions& options)
    : layout_(small_layout()),
      optimizer_(make_optimizer(options)),
      values_(first_values()),
      slots_(zeroed_slots(*optimizer_, values_.shape())) {}

void Reference::run_step(std::span<const Gradient> gradients, const UpdateStep& step) {
  Gradient sum;
  {
    const FlushDenormals flush;
    for (std::int64_t i = 0; i < layout_.total(); ++i) sum.push_back(sum_at(gradients, i));
  }
  for (std::size_t p = 0; p < layout_.entries().size(); ++p) {
    const std::int64_t begin = layout_.offset(p);
    const std::int64_t end = begin + layout_.size(p);
    const auto window = [&](const Tensor& block) { return block.rows(begin, end).f32(); };
    std::vector<std::span<float>> slots;
    for (const Tensor& slot : slots_) slots.push_back(window(slot));
    optimizer_->update(step, window(values_), part_of(sum, {begin, end}), slots,
                       layout_.entries()[p].decays);
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

bool same_bits(std::span<const Tensor> a, std::span<const Tensor> b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
}

}  // namespace syncopate::ps
