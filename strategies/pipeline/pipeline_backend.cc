#include "strategies/pipeline/pipeline_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "strategies/pipeline/handover.h"
#include "strategies/pipeline/pipeline_model.h"

namespace syncopate {
namespace {

// The hand-over between two stages that are threads of one process.
class ThreadHandover final : public Handover {
 public:
  explicit ThreadHandover(HandoverTensors tensors) : tensors_(std::move(tensors)) {}

  Tensor memory(int micro_batch, std::int64_t samples) const override {
    return tensors_.of(micro_batch).rows(0, samples);
  }
  void begin_step() override { published_.store(0); }
  void send(int /*micro_batch*/, std::int64_t /*samples*/) override {
    published_.fetch_add(1, std::memory_order_release);
    published_.notify_all();
  }
  void give_up() override {
    published_.fetch_or(kGivenUp, std::memory_order_release);
    published_.notify_all();
  }
  // Waits without a deadline, because the sending stage's thread calls send() or, if a stage fails,
  // give_up().
  bool receive(int micro_batch, std::int64_t /*samples*/) override {
    for (;;) {
      const std::uint32_t published = published_.load(std::memory_order_acquire);
      if ((published & kGivenUp) != 0) return false;
      if (published > static_cast<std::uint32_t>(micro_batch)) return true;
      published_.wait(published, std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t kGivenUp = std::uint32_t{1} << 31;

  const HandoverTensors tensors_;
  std::atomic<std::uint32_t> published_{0};
};

}  // namespace

PipelineBackend::PipelineBackend(LocalStages stages, int micro_batches, MakeLinks make_links)
    : stages_(std::move(stages)),
      micro_batches_(micro_batches),
      make_links_(std::move(make_links)),
      idle_seconds_(stages_.backends.size(), 0.0),
      team_(static_cast<int>(stages_.backends.size()), "stage") {}

std::string PipelineBackend::description() const {
  const std::string of_stage = stages_.backends.front()->description();
  return fmt::format("{} stages, each {}", stages_.all.size(), of_stage);
}

std::unique_ptr<Model> PipelineBackend::compile(const Graph& graph, ParameterArena& arena,
                                                StateBlock& state, const CompileOptions& options) {
  if (options.mode != Mode::kTrain) {
    return stages_.backends.front()->compile(graph, arena, state, options);
  }
  const std::vector<StageLinks> links =
      make_links_(stages_.all, samples_of_micro_batch(options.batch_size, micro_batches_));
  std::vector<StageParts> parts;
  parts.reserve(links.size());
  for (int s = 0; s < team_.count(); ++s) {
    parts.push_back({.stage = &stage(s),
                     .backend = stages_.backends[static_cast<std::size_t>(s)].get(),
                     .index = stages_.first + s,
                     .stages = static_cast<int>(stages_.all.size()),
                     .links = links[static_cast<std::size_t>(s)]});
  }
  return std::make_unique<PipelineModel>(parts, micro_batches_, team_, arena, state, options,
                                         idle_seconds_);
}

void PipelineBackend::update(const Optimizer& optimizer, const UpdateStep& step,
                             ParameterArena& arena, std::span<const Tensor> slots, Bucket range) {
  team_.run([&](int s) {
    const Bucket part{.begin = std::max(range.begin, stage(s).first_value),
                      .end = std::min(range.end, stage(s).end_value)};
    if (part.begin >= part.end) return;
    stages_.backends[static_cast<std::size_t>(s)]->update(optimizer, step, arena, slots, part);
  });
}

std::vector<StageLinks> link_threads(std::span<const Stage> stages, int micro_batches,
                                     std::int64_t samples) {
  std::vector<StageLinks> links(stages.size());
  for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
    const Shape shape = shape_of_samples(stages[s].graph.logits_shape(), samples);
    const int in_flight = micro_batches_in_flight(static_cast<int>(s),
                                                  static_cast<int>(stages.size()), micro_batches);
    const auto make = [&] {
      return std::make_shared<ThreadHandover>(
          HandoverTensors{make_host_tensors(shape, in_flight), micro_batches});
    };
    links[s].outputs = make();
    links[s].output_gradients = make();
    links[s + 1].inputs = links[s].outputs;
    links[s + 1].input_gradients = links[s].output_gradients;
  }
  return links;
}

}  // namespace syncopate
