#include "models/backend/cpu/cpu_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

CpuModel::CpuModel(const OneDnn& onednn, const Graph& graph, ParameterArena& arena,
                   StateBlock& state, LanePool& lanes, const CpuKernels& kernels,
                   const CompileOptions& options)
    : onednn_(onednn),
      graph_(graph),
      arena_(arena),
      state_(state),
      lanes_(lanes),
      kernels_(kernels),
      options_(options),
      groups_(match_groups(graph, options.fuse)),
      schedule_(schedule_buckets(graph, groups_, arena.layout(), arena.buckets())),
      packed_(onednn, graph, arena),
      batch_norms_(groups_.size()) {
  if (options.batch_size < 1) {
    throw ShapeError(
        fmt::format("compile: found a batch size of {}; expected at least 1", options.batch_size));
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!has_main<BatchNormOp>(graph, groups_[i])) continue;
    const std::int64_t channels = graph.nodes[static_cast<std::size_t>(groups_[i].main)].shape[2];
    const std::int64_t padded = (channels + kernels.block - 1) / kernels.block * kernels.block;
    batch_norms_[i] = std::make_unique<BatchNormShared>(lanes.count(), padded, options.statistics);
  }
  if (options.mode == Mode::kTrain) {
    lane_gradients_.push_back(arena.gradients());
    for (int lane = 1; lane < lanes.count(); ++lane) {
      lane_gradients_.push_back(make_host_tensor({arena.layout().total()}, DType::kF32));
    }
  }
  const auto differentiated = std::ranges::find_if(groups_, [&](const FusedGroup& group) {
    return has_main<InputOp>(graph, group) && group.is_differentiated;
  });
  if (options.mode == Mode::kTrain && differentiated != groups_.end()) {
    Shape shape = graph.nodes[static_cast<std::size_t>(differentiated->main)].shape;
    shape.insert(shape.begin(), options.batch_size);
    input_gradient_ = make_host_tensor(std::move(shape), DType::kF32);
  }
  for (int lane = 0; lane < lanes.count(); ++lane) {
    steps_.push_back(
        LaneStep{.lanes = lanes, .inputs = std::vector<const std::byte*>(graph.num_inputs())});
  }
  plan_for(options.batch_size);
}

CpuModel::Plan& CpuModel::plan_for(std::int64_t n) {
  for (const auto& plan : plans_) {
    if (plan->n == n) return *plan;
  }
  // At most two plans (compiled programs for one batch size) are kept: one for the full batch, and
  // one for the short last batch of an epoch.
  if (plans_.size() > 1) plans_.pop_back();
  auto plan = std::make_unique<Plan>();
  plan->n = n;
  std::int64_t first = 0;
  // oneDNN makes a primitive for the number of threads of the calling thread, so all primitives are
  // made on a lane, which has one thread.
  lanes_.run([&](int lane) {
    if (lane != 0) return;
    for (int l = 0; l < lanes_.count(); ++l) {
      const std::int64_t share = n / lanes_.count() + (l < n % lanes_.count() ? 1 : 0);
      const GroupContext context = {
          .onednn = onednn_,
          .graph = graph_,
          .kernels = kernels_,
          .packed = packed_,
          .arena = arena_,
          .state = state_,
          .mode = options_.mode,
          .winograd = options_.winograd,
          .n = share,
          .lane = l,
          .lanes = lanes_.count(),
          .gradients = lane_gradients_.empty()
                           ? nullptr
                           : lane_gradients_[static_cast<std::size_t>(l)].f32().data()};
      plan->programs.push_back(std::make_unique<LaneProgram>(context, groups_, batch_norms_));
      plan->first_sample.push_back(first);
      first += share;
      if (share > 0) ++plan->active_lanes;
    }
  });
  plans_.push_back(std::move(plan));
  return *plans_.back();
}

void CpuModel::start_forward(const Batch& batch, const ValuesHook& before_use) {
  check_batch(graph_, batch, options_.batch_size, options_.mode);
  const std::int64_t n = batch.num_samples;
  plan_ = nullptr;  // must not dangle if plan_for() deletes the old plan and throws
  plan_ = &plan_for(n);
  before_use_ = &before_use;
  for (std::size_t l = 0; l < steps_.size(); ++l) {
    const std::int64_t first = plan_->first_sample[l];
    const std::int64_t end = l + 1 < steps_.size() ? plan_->first_sample[l + 1] : n;
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      const std::span<const std::byte> bytes = batch.inputs[i].bytes();
      const std::size_t sample_bytes = n == 0 ? 0 : bytes.size() / static_cast<std::size_t>(n);
      steps_[l].inputs[i] = bytes.data() + static_cast<std::size_t>(first) * sample_bytes;
    }
    const std::span<const std::byte> target = batch.target.bytes();
    const std::size_t target_bytes = n == 0 ? 0 : target.size() / static_cast<std::size_t>(n);
    steps_[l].target = target.subspan(static_cast<std::size_t>(first) * target_bytes,
                                      static_cast<std::size_t>(end - first) * target_bytes);
    steps_[l].loss_divisor = batch.loss_divisor;
    if (!input_gradient_.shape().empty()) {
      steps_[l].input_gradient = input_gradient_.rows(first, end).f32().data();
    }
    const auto* keys = reinterpret_cast<const std::uint64_t*>(batch.keys.bytes().data());
    steps_[l].keys = batch.keys.shape().empty() ? nullptr : keys + first;
  }
  lanes_.run([this](int lane) { forward_lane(lane); });
}

Scores CpuModel::scores() {
  check(plan_ != nullptr, "scores() is called after a forward pass");
  Scores scores;
  scores.num_samples = plan_->n;
  for (const LaneStep& step : steps_) {
    scores.loss += step.loss;
    scores.metrics[kMainMetric] += step.metric;
  }
  return scores;
}

void CpuModel::forward_lane(int lane) {
  LaneProgram& program = *plan_->programs[static_cast<std::size_t>(lane)];
  LaneStep& step = steps_[static_cast<std::size_t>(lane)];
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const BucketId bucket : schedule_.first_used_by[i]) prepare_bucket(bucket, lane);
    program.forward(i, step);
  }
}

void CpuModel::prepare_bucket(BucketId bucket, int lane) {
  if (lane == 0) (*before_use_)(bucket);
  lanes_.barrier();
  if (packed_.current(bucket)) return;
  packed_.refresh(bucket, lane, lanes_.count());
  lanes_.barrier();
  if (lane == 0) packed_.mark_current(bucket);
}

void CpuModel::backward(const GradientHook& on_ready) {
  check(options_.mode == Mode::kTrain, "backward() is called on a model compiled for training");
  check(plan_ != nullptr, "backward() is called after a forward pass");
  on_ready_ = &on_ready;
  lanes_.run([this](int lane) { backward_lane(lane); });
  has_accumulated_ = false;
}

void CpuModel::accumulate() {
  backward([](BucketId) {});
  if (accumulated_.num_elements() <= 1) {
    accumulated_ = make_host_tensor(arena_.gradients().shape(), DType::kF32);
  }
  const std::span<const float> gradients = arena_.gradients().f32();
  std::memcpy(accumulated_.f32().data(), gradients.data(), gradients.size_bytes());
  has_accumulated_ = true;
}

void CpuModel::backward_lane(int lane) {
  LaneProgram& program = *plan_->programs[static_cast<std::size_t>(lane)];
  LaneStep& step = steps_[static_cast<std::size_t>(lane)];
  for (std::size_t i = groups_.size(); i-- > 0;) {
    program.backward(i, step);
    for (const BucketId bucket : schedule_.completed_by[i]) complete_bucket(bucket, lane);
  }
}

void CpuModel::complete_bucket(BucketId bucket, int lane) {
  const Bucket& range = arena_.buckets()[static_cast<std::size_t>(bucket)];
  float* sum = lane_gradients_[0].f32().data();
  if (plan_->n == 0 && lane == 0) std::fill(sum + range.begin, sum + range.end, 0.0F);
  if ((plan_->active_lanes != 1 && plan_->n > 0) || has_accumulated_) {
    lanes_.barrier();
    const Share share =
        share_of(range.end - range.begin, lane, lanes_.count(), kAlignmentBytes / sizeof(float));
    for (int other = 1; other < plan_->active_lanes; ++other) {
      const float* part = lane_gradients_[static_cast<std::size_t>(other)].f32().data();
      const std::int64_t begin = range.begin + share.begin;
      kernels_.add(sum + begin, part + begin, sum + begin, share.end - share.begin);
    }
    if (has_accumulated_) {
      const std::int64_t begin = range.begin + share.begin;
      kernels_.add(sum + begin, accumulated_.f32().data() + begin, sum + begin,
                   share.end - share.begin);
    }
  }
  lanes_.barrier();
  if (lane == 0) (*on_ready_)(bucket);
}

Tensor CpuModel::logits() const {
  check(plan_ != nullptr, "logits() is called after a forward pass");
  Shape shape = graph_.logits_shape();
  shape.insert(shape.begin(), plan_->n);
  const Tensor logits = make_host_tensor(std::move(shape), DType::kF32);
  copy_logits(logits.f32());
  return logits;
}

void CpuModel::copy_logits(std::span<float> into) const {
  check(plan_ != nullptr, "copy_logits() is called after a forward pass");
  float* out = into.data();
  for (const auto& program : plan_->programs) out = program->copy_logits(out);
  check(out == into.data() + into.size(), "the logits of the last forward pass fit");
}

Tensor CpuModel::input_gradient() const {
  check(plan_ != nullptr && !input_gradient_.shape().empty(),
        "input_gradient() is called after a backward pass, of a network with such an input");
  return input_gradient_.rows(0, plan_->n);
}

}  // namespace syncopate
