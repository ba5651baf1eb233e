#include "strategies/pipeline/pipeline_model.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <exception>

#include "models/base/errors.h"
#include "models/base/trace.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begun, Clock::time_point ended) {
  return std::chrono::duration<double>(ended - begun).count();
}

}  // namespace

PipelineModel::PipelineModel(std::span<const StageParts> stages, int micro_batches,
                             ThreadTeam& team, ParameterArena& arena, StateBlock& state,
                             const CompileOptions& options, std::span<double> idle_seconds)
    : batch_size_(options.batch_size), team_(team), arena_(arena), idle_seconds_(idle_seconds) {
  check(options.mode == Mode::kTrain && options.statistics == nullptr,
        "a pipeline trains, and each stage normalises its own micro-batches");
  check(idle_seconds.size() == stages.size(), "each stage has its idle time");
  CompileOptions of_stage = options;
  of_stage.batch_size = samples_of_micro_batch(options.batch_size, micro_batches);
  of_stage.updates_on_device = false;
  for (const StageParts& parts : stages) {
    workers_.push_back(std::make_unique<StageWorker>(parts, micro_batches, arena, state, of_stage));
  }
}

void PipelineModel::start_forward(const Batch& batch, const ValuesHook& before_use) {
  for (std::size_t b = 0; b < arena_.buckets().size(); ++b) before_use(static_cast<BucketId>(b));
  for (const auto& worker : workers_) worker->reset();
  const Clock::time_point begun = Clock::now();
  std::vector<double> busy(workers_.size());
  std::vector<Clock::time_point> ended(workers_.size());
  team_.run(
      [&](int s) {
        const auto stage = static_cast<std::size_t>(s);
        const Clock::time_point own_begin = Clock::now();
        workers_[stage]->run(batch);
        ended[stage] = Clock::now();
        busy[stage] = seconds_between(own_begin, ended[stage]) - workers_[stage]->waited_seconds();
      },
      [&](const std::exception_ptr&) {
        for (const auto& worker : workers_) worker->give_up();
      });
  const Clock::time_point all_ended = Clock::now();
  for (std::size_t s = 0; s < busy.size(); ++s) {
    idle_seconds_[s] += seconds_between(begun, all_ended) - busy[s];
    if (rows_.empty()) continue;
    rows_[s]->add(TraceKind::kCommunication, ended[s], all_ended, -1);
  }
  scores_ = workers_.back()->scores();
}

void PipelineModel::backward(const GradientHook& on_ready) {
  for (std::size_t b = 0; b < arena_.buckets().size(); ++b) on_ready(static_cast<BucketId>(b));
}

void PipelineModel::accumulate() {
  check(false, "a pipeline divides a step into micro-batches itself");
}

bool PipelineModel::record_passes(Trace& trace) {
  // Above the id of the replica, and below the ids of readers.
  constexpr int kFirstId = 1;
  for (const auto& worker : workers_) {
    rows_.push_back(
        &trace.thread(kFirstId + worker->stage(), fmt::format("stage {}", worker->stage())));
    worker->record(rows_.back());
  }
  return true;
}

Tensor PipelineModel::logits() const {
  throw UnavailableError("a pipeline in training keeps no logits; compile for evaluation");
}

}  // namespace syncopate
