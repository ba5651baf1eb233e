#include "bench/virtual_clock/pipeline_times.h"

#include <algorithm>
#include <cstddef>

#include "bench/virtual_clock/event_queue.h"
#include "models/base/errors.h"
#include "strategies/pipeline/stage_worker.h"
#include "strategies/step_trailer.h"

namespace syncopate::bench {
namespace {

constexpr auto kF32Bytes = static_cast<std::int64_t>(sizeof(float));

struct StageEvent {
  enum class Kind : std::uint8_t { kBegin, kForward, kBackward, kInput, kGradient };
  Kind kind = Kind::kBegin;
  int stage = 0;
};

// One stage in a step: what it has computed and what has arrived, in micro-batches.
struct StageProgress {
  bool is_busy = true;  // computing, or has not begun the step
  int forward = 0;
  int backward = 0;
  int inputs = 0;
  int gradients = 0;
};

class PipelineSchedule {
 public:
  PipelineSchedule(const PipelineLoad& load, const Link& link,
                   const std::vector<std::vector<VirtualTime>>& computation)
      : load_(load),
        computation_(computation),
        network_(link, load.stages(), 0),
        stages_(static_cast<std::size_t>(load.stages())) {}

  VirtualTime run(std::span<const VirtualTime> begin) {
    for (int s = 0; s < load_.stages(); ++s) {
      queue_.add(begin[static_cast<std::size_t>(s)], s, {StageEvent::Kind::kBegin, s});
    }
    while (!queue_.empty()) on_event(queue_.take());
    for (const StageProgress& stage : stages_) {
      check(stage.backward == load_.micro_batches, "every micro-batch passes every stage");
    }
    return queue_.now();
  }

 private:
  StageProgress& of(int stage) { return stages_[static_cast<std::size_t>(stage)]; }
  bool is_last(int stage) const { return stage + 1 == load_.stages(); }

  void on_event(const StageEvent& event) {
    using Kind = StageEvent::Kind;
    const int s = event.stage;
    StageProgress& stage = of(s);
    switch (event.kind) {
      case Kind::kInput:
        ++stage.inputs;
        break;
      case Kind::kGradient:
        ++stage.gradients;
        break;
      case Kind::kBegin:
        stage.is_busy = false;
        break;
      case Kind::kForward:
        stage.is_busy = false;
        ++stage.forward;
        if (!is_last(s)) send(s, s + 1, s, Kind::kInput);
        break;
      case Kind::kBackward:
        stage.is_busy = false;
        ++stage.backward;
        if (s > 0) send(s, s - 1, s - 1, Kind::kGradient);
        break;
    }
    compute_next(s);
  }

  // boundary: the stage before it.
  void send(int from, int to, int boundary, StageEvent::Kind kind) {
    const std::int64_t bytes = load_.output_bytes[static_cast<std::size_t>(boundary)];
    queue_.add(network_.across(queue_.now(), from, to, bytes), to, {kind, to});
  }

  // As StageWorker::run(): forward passes until as many micro-batches as possible are in flight,
  // then a backward pass before each further one.
  void compute_next(int s) {
    StageProgress& stage = of(s);
    if (stage.is_busy || stage.backward == load_.micro_batches) return;
    const int in_flight = micro_batches_in_flight(s, load_.stages(), load_.micro_batches);
    const bool goes_forward =
        stage.forward < std::min(stage.backward + in_flight, load_.micro_batches);
    if (goes_forward ? s > 0 && stage.inputs <= stage.forward
                     : !is_last(s) && stage.gradients <= stage.backward) {
      return;
    }
    const int m = goes_forward ? stage.forward : stage.backward;
    const VirtualTime all = computation_[static_cast<std::size_t>(s)][static_cast<std::size_t>(m)];
    const VirtualTime forward = all / 3;
    stage.is_busy = true;
    queue_.add(queue_.now() + (goes_forward ? forward : all - forward), s,
               {goes_forward ? StageEvent::Kind::kForward : StageEvent::Kind::kBackward, s});
  }

  const PipelineLoad& load_;
  const std::vector<std::vector<VirtualTime>>& computation_;
  Network network_;
  std::vector<StageProgress> stages_;
  EventQueue<StageEvent> queue_;
};

}  // namespace

PipelineLoad load_of(std::span<const Stage> stages, int micro_batches, std::int64_t samples) {
  PipelineLoad load{.work = {}, .output_bytes = {}, .micro_batches = micro_batches};
  double all = 0.0;
  for (const Stage& stage : stages) all += static_cast<double>(stage.multiply_adds);
  for (const Stage& stage : stages) {
    load.work.push_back(static_cast<double>(stage.multiply_adds) / all);
    if (&stage == &stages.back()) continue;
    load.output_bytes.push_back(kF32Bytes * samples * num_elements(stage.graph.logits_shape()));
  }
  return load;
}

VirtualTime end_of_pipeline_step(const PipelineLoad& load, const Link& link,
                                 std::span<const VirtualTime> begin,
                                 const std::vector<std::vector<VirtualTime>>& computation) {
  const VirtualTime computed = PipelineSchedule(load, link, computation).run(begin);
  return computed + ring_all_reduce_time(link, load.stages(), kF32Bytes * kTrailerElements);
}

std::int64_t bytes_handed_over(const PipelineLoad& load, int stage) {
  std::int64_t bytes = 0;
  if (stage > 0) bytes += load.output_bytes[static_cast<std::size_t>(stage - 1)];
  if (stage + 1 < load.stages()) bytes += load.output_bytes[static_cast<std::size_t>(stage)];
  return bytes * load.micro_batches;
}

}  // namespace syncopate::bench
