#include "models/backend/cuda/cuda_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nvtx3/nvtx3.hpp>

#include "models/backend/backend.h"
#include "models/backend/cuda/device.h"
#include "models/base/errors.h"

namespace syncopate::cuda {

ReplicaHandles::ReplicaHandles(int device_index,
                               const std::function<std::unique_ptr<Operations>(cudaStream_t)>& plan)
    : device(device_index) {
  use_device(device);
  compute = make_stream();
  copies = make_stream();
  operations = plan(compute.get());
}

CudaModel::CudaModel(ReplicaHandles& handles, const BackendOptions& backend, const Graph& graph,
                     const ParameterArena& arena, std::shared_ptr<DeviceVariables> variables,
                     BucketSums* sums, const CompileOptions& options)
    : handles_(handles),
      backend_(backend),
      graph_(graph),
      options_(options),
      groups_(match_groups(graph, options.fuse, /*pools_first_layer=*/false)),
      schedule_(schedule_buckets(graph, groups_, arena.layout(), arena.buckets())),
      variables_(std::move(variables)),
      bucket_sums_(sums) {
  if (options.batch_size < 1) {
    throw ShapeError(fmt::format("compile: a batch of {} samples", options.batch_size));
  }
  const auto samples = static_cast<std::size_t>(options.batch_size);
  for (const NodeId id : graph.inputs()) {
    const Node& node = graph.nodes[static_cast<std::size_t>(id)];
    const std::size_t sample_bytes = size_bytes(std::get<InputOp>(node.operation).dtype) *
                                     static_cast<std::size_t>(num_elements(node.shape));
    inputs_.push_back(std::make_unique<BatchUpload>(samples * sample_bytes, handles.device));
    step_.inputs.push_back(inputs_.back()->data());
  }
  const std::size_t target_bytes = size_bytes(graph.target_dtype()) *
                                   static_cast<std::size_t>(num_elements(graph.target_shape()));
  targets_.emplace(samples * target_bytes, handles.device);
  if (options.mode == Mode::kTrain && graph.uses_keys()) {
    keys_.emplace(samples * sizeof(std::uint64_t), handles.device);
    step_.keys = static_cast<const std::uint64_t*>(keys_->data());
  }
  sums_ = make_device_buffer(sizeof(LossSums), handles.device);
  host_sums_ = make_pinned_buffer(sizeof(LossSums));
  forward_ends_ = make_event();
  for (std::size_t b = 0; b < arena.buckets().size(); ++b) {
    computed_.push_back(make_event());
    // The host sleeps while it waits for gradients, because servers and updates need the core.
    arrived_.push_back(make_event(EventWait::kSleeps));
  }
  program_for(options.batch_size);
}

// Waits for the model's streams: their work may still use memory that is about to be freed.
CudaModel::~CudaModel() {
  cudaSetDevice(handles_.device);
  if (bucket_sums_ != nullptr) bucket_sums_->detach();
  cudaStreamSynchronize(handles_.compute.get());
  cudaStreamSynchronize(handles_.copies.get());
}

Program& CudaModel::program_for(std::int64_t n) {
  for (const auto& program : programs_) {
    if (program->samples() == n) return *program;
  }
  // At most two compiled programs are kept: one for the full batch, and one for another batch size,
  // since the last batch of an epoch may be smaller.
  if (programs_.size() > 1) {
    check_cuda(cudaStreamSynchronize(handles_.compute.get()));
    programs_.pop_back();
  }
  programs_.push_back(
      std::make_unique<Program>(GroupContext{.graph = graph_,
                                             .mode = options_.mode,
                                             .n = n,
                                             .precision = backend_.precision,
                                             .deterministic = backend_.deterministic,
                                             .captures = backend_.captures_steps,
                                             .measures = n == options_.batch_size,
                                             .device = handles_.device,
                                             .stream = handles_.compute.get(),
                                             .operations = handles_.operations.get(),
                                             .variables = variables_.get(),
                                             .statistics = options_.statistics},
                                groups_));
  return *programs_.back();
}

bool CudaModel::has_values() const {
  return options_.updates_on_device || options_.mode == Mode::kEvaluate;
}

bool CudaModel::runs_without_host() const { return has_values() && options_.statistics == nullptr; }

void CudaModel::prepare(const Batch& batch) {
  program_ = nullptr;  // must not dangle if program_for() deletes the old one and throws
  program_ = &program_for(batch.num_samples);
  cudaStream_t stream = handles_.compute.get();
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->start(batch.inputs[i], stream);
  targets_->start(batch.target, stream);
  if (keys_) keys_->start(batch.keys, stream);
  check_cuda(cudaMemsetAsync(sums_->data(), 0, sizeof(LossSums), stream));
  step_.target = targets_->data();
  step_.loss_divisor = batch.loss_divisor;
  step_.sums = reinterpret_cast<LossSums*>(sums_->data());
}

void CudaModel::refresh_all() {
  variables_->begin_refresh(handles_.compute.get());
  for (const auto& buckets : schedule_.first_used_by) {
    for (const BucketId bucket : buckets) variables_->refresh(bucket, handles_.compute.get());
  }
}

void CudaModel::start_forward(const Batch& batch, const ValuesHook& before_use) {
  const nvtx3::scoped_range range("forward");
  check_batch(graph_, batch, options_.batch_size, options_.mode);
  use_device(handles_.device);
  prepare(batch);
  cudaStream_t stream = handles_.compute.get();
  if (has_values()) {
    bool all_current = true;
    for (const auto& buckets : schedule_.first_used_by) {
      for (const BucketId bucket : buckets) {
        before_use(bucket);
        all_current = all_current && variables_->is_current(bucket);
      }
    }
    if (!all_current) refresh_all();
    // Batch norm's running statistics are uploaded after the values: only a comparison of the
    // values' versions shows whether the device's statistics are outdated.
    variables_->upload_state(stream);
    if (runs_without_host()) {
      program_->forward_all(step_);
    } else {
      for (std::size_t i = 0; i < groups_.size(); ++i) program_->forward(i, step_);
    }
  } else {
    variables_->begin_refresh(stream);
    variables_->upload_state(stream);
    // The host runs ahead of the device: the values of a group are copied while earlier groups
    // compute.
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (const BucketId bucket : schedule_.first_used_by[i]) {
        before_use(bucket);
        variables_->refresh(bucket, stream);
      }
      program_->forward(i, step_);
    }
  }
  check_cuda(cudaMemcpyAsync(host_sums_->data(), sums_->data(), sizeof(LossSums),
                             cudaMemcpyDeviceToHost, stream));
  if (options_.mode == Mode::kTrain) variables_->download_state(stream);
  check_cuda(cudaEventRecord(forward_ends_.get(), stream));
}

Scores CudaModel::scores() {
  check(program_ != nullptr, "scores follow a forward");
  const std::int64_t samples = program_->samples();
  wait_for(forward_ends_);
  LossSums sums;
  std::memcpy(&sums, host_sums_->data(), sizeof sums);
  return {.loss = sums.loss, .num_samples = samples, .metrics = {sums.metric}};
}

void CudaModel::accumulate() {
  const nvtx3::scoped_range range("accumulate");
  start_backward(true);
  variables_->keep_gradients(handles_.compute.get());
}

std::vector<BucketId> CudaModel::start_backward(bool is_partial) {
  check(options_.mode == Mode::kTrain, "backward needs a model compiled for training");
  check(program_ != nullptr, "backward follows a forward");
  use_device(handles_.device);
  cudaStream_t stream = handles_.compute.get();
  // With loss scaling, if the host sums the gradients, all of them are checked for infinities and
  // NaN before the first bucket is copied to the host.
  const bool unscales =
      !is_partial && !options_.updates_on_device && variables_->loss_scale() != nullptr;
  std::vector<BucketId> started;
  for (std::size_t end = groups_.size(); end > 0;) {
    const std::size_t begin = begin_of_segment(end);
    if (runs_without_host()) {
      program_->backward_segment(begin, end, step_);
    } else {
      program_->backward(begin, step_);
    }
    for (std::size_t i = end; i-- > begin;) {
      for (const BucketId bucket : schedule_.completed_by[i]) {
        if (program_->samples() == 0) variables_->zero_gradients(bucket, stream);
        variables_->add_kept_gradients(bucket, stream);
        started.push_back(bucket);
        if (is_partial) continue;
        if (!options_.updates_on_device && !unscales) start_download(bucket);
        if (bucket_sums_ != nullptr) bucket_sums_->start(bucket, stream);
      }
    }
    end = begin;
  }
  if (unscales) {
    variables_->unscale_gradients(stream);
    for (const BucketId bucket : started) start_download(bucket);
  }
  return started;
}

void CudaModel::backward(const GradientHook& on_ready) {
  const nvtx3::scoped_range range("backward");
  const std::vector<BucketId> started = start_backward(false);
  variables_->drop_kept_gradients();
  // All kernels of the backward pass have been started here, but the device still computes. Each
  // bucket's gradients are reported to the caller as soon as they have been copied to the host.
  for (const BucketId bucket : started) {
    if (!options_.updates_on_device) {
      check_cuda(cudaEventSynchronize(arrived_[static_cast<std::size_t>(bucket)].get()));
    }
    on_ready(bucket);
  }
}

// A segment is a range of fused groups; their backward passes are started together. It has all
// groups if the host does nothing in between, the groups up to the end of the next bucket if
// buckets are summed on the device, and one group in all other cases.
std::size_t CudaModel::begin_of_segment(std::size_t end) const {
  if (!runs_without_host()) return end - 1;
  if (bucket_sums_ == nullptr) return 0;
  std::size_t begin = end - 1;
  while (begin > 0 && schedule_.completed_by[begin].empty()) --begin;
  return begin;
}

void CudaModel::wait_for(const StreamEvent& event) {
  check_cuda(cudaEventSynchronize(event.get()));
  if (bucket_sums_ != nullptr) bucket_sums_->check();
}

void CudaModel::start_download(BucketId bucket) {
  const auto b = static_cast<std::size_t>(bucket);
  check_cuda(cudaEventRecord(computed_[b].get(), handles_.compute.get()));
  check_cuda(cudaStreamWaitEvent(handles_.copies.get(), computed_[b].get()));
  variables_->download_gradients(bucket, handles_.copies.get());
  check_cuda(cudaEventRecord(arrived_[b].get(), handles_.copies.get()));
}

std::vector<GroupTime> CudaModel::time_groups(const Batch& batch) {
  check(runs_without_host(), "groups are timed in passes in which the host takes no part");
  start_forward(batch, [](BucketId) {});  // brings samples and values to the device
  cudaStream_t stream = handles_.compute.get();
  const std::size_t groups = groups_.size();
  std::vector<StreamEvent> marks;  // between the groups of the forward, then of the backward pass
  const auto mark = [&] {
    marks.push_back(make_timed_event());
    check_cuda(cudaEventRecord(marks.back().get(), stream));
  };
  mark();
  for (std::size_t i = 0; i < groups; ++i) {
    program_->forward(i, step_);
    mark();
  }
  for (std::size_t i = groups; i-- > 0;) {
    program_->backward(i, step_);
    mark();
  }
  std::vector<GroupTime> times;
  for (std::size_t i = 0; i < groups; ++i) {
    const std::size_t backward = 2 * groups - 1 - i;
    times.push_back({.group = groups_[i],
                     .forward_seconds = seconds_between(marks[i], marks[i + 1]),
                     .backward_seconds = seconds_between(marks[backward], marks[backward + 1])});
  }
  return times;
}

Tensor CudaModel::logits() const {
  if (program_ == nullptr) throw InternalError("logits follow a forward");
  Shape shape = graph_.logits_shape();
  shape.insert(shape.begin(), program_->samples());
  const Tensor logits = make_host_tensor(std::move(shape), DType::kF32);
  const std::int64_t count = logits.num_elements();
  check_cuda(cudaEventSynchronize(forward_ends_.get()));
  with_type(backend_.precision, [&]<typename T>() {
    std::vector<T> raw(static_cast<std::size_t>(count));
    check_cuda(
        cudaMemcpy(raw.data(), program_->logits(), raw.size() * sizeof(T), cudaMemcpyDeviceToHost));
    std::ranges::transform(raw, logits.f32().begin(),
                           [](T value) { return static_cast<float>(value); });
  });
  return logits;
}

}  // namespace syncopate::cuda
