#include "worker/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "strategies/snapshot.h"

namespace syncopate {

std::int64_t evaluation_batch(const Graph& graph, std::int64_t most) {
  constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;
  std::int64_t bytes = 1;  // of a sample
  for (const Node& node : graph.nodes) {
    bytes += num_elements(node.shape) * static_cast<std::int64_t>(sizeof(float));
  }
  const auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(kMostBytes / bytes, 1));
  return std::min(most, static_cast<std::int64_t>(std::bit_floor(fitting)));
}

PartialEvaluator::PartialEvaluator(Backend& backend, const Graph& graph, ParameterArena& arena,
                                   StateBlock& state, const Dataset& dataset,
                                   const EvaluationOptions& options, int part, int parts)
    : graph_(graph),
      dataset_(dataset),
      counts_classes_(has_classes(graph.loss().kind) &&
                      (options.counts_classes || graph.gives_maps() ||
                       graph.num_classes() <= kMostCountedClasses)) {
  const std::int64_t batch_size =
      std::min(evaluation_batch(graph, options.batch_size), dataset.size());
  batches_of_all_ = (dataset.size() + batch_size - 1) / batch_size;
  first_batch_ = batches_of_all_ * part / parts;
  end_batch_ = batches_of_all_ * (part + 1) / parts;
  if (first_batch_ == end_batch_) return;  // no batches: there are more replicas than batches
  samples_ = std::make_unique<DatasetRange>(dataset, first_batch_ * batch_size,
                                            std::min(end_batch_ * batch_size, dataset.size()));
  batches_ = make_batch_source(*samples_, {.batch_size = std::min(batch_size, samples_->size()),
                                           .shuffle = false,
                                           .drop_remainder = false,
                                           .leaves_out_bad = true,
                                           .threads = options.threads,
                                           .autotune = options.autotune});
  model_ =
      backend.compile(graph, arena, state, {.mode = Mode::kEvaluate, .batch_size = batch_size});
}

void PartialEvaluator::run(const std::function<bool()>& stop, std::span<Scores> sums,
                           const OnProgress& on_progress) {
  // An evaluation that was stopped leaves the batch source in the middle of the samples.
  if (batches_ != nullptr && batches_->position().offset != 0) {
    throw InternalError("an evaluation begins with its first batch");
  }
  if (counts_classes_) confusion_.emplace(graph_.num_classes());
  for (std::int64_t b = first_batch_; b < end_batch_ && !stop(); ++b) {
    const Batch& batch = batches_->next();
    Scores& scores = sums[static_cast<std::size_t>(b)];
    scores = {};
    if (batch.num_samples > 0) {
      scores = model_->forward(batch, [](BucketId) {});
      if (confusion_) confusion_->add(model_->logits(), batch.target);
    }
    // The model's loss is a mean over the batch; the sums of all batches are added later.
    scores.loss *= static_cast<double>(batch.loss_divisor);
    scores.num_bad = batch.num_bad;
    if (on_progress) on_progress(b + 1 - first_batch_, end_batch_ - first_batch_);
  }
}

std::optional<Evaluation> PartialEvaluator::run(const std::function<bool()>& stop,
                                                const OnProgress& on_progress) {
  check(first_batch_ == 0 && end_batch_ == batches_of_all_, "an evaluator of all batches");
  const auto begun = std::chrono::steady_clock::now();
  std::vector<Scores> sums(static_cast<std::size_t>(batches_of_all_));
  bool was_stopped = false;
  run([&] { return was_stopped = was_stopped || (stop && stop()); }, sums, on_progress);
  if (was_stopped) return std::nullopt;
  Evaluation result = add_up(sums, graph_.loss().kind, dataset_, confusion_);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

namespace {

// Returns why a sample cannot be read: the first bad one from `index` on. Each task finds it by
// itself, although another task may have evaluated the batch: all have the same data.
std::string first_bad_from(std::int64_t index, const Dataset& dataset) {
  std::vector<std::vector<std::byte>> memory;
  for (const TensorSpec& input : dataset.spec().inputs) memory.emplace_back(input.size_bytes());
  std::vector<std::byte> target(dataset.spec().target.size_bytes());
  const std::vector<std::span<std::byte>> inputs(memory.begin(), memory.end());
  for (; index < dataset.size(); ++index) {
    try {
      read_sample(dataset, index, {}, {inputs, target});
    } catch (const FileError& error) {
      return error.what();
    }
  }
  return "";
}

}  // namespace

std::string describe_bad(std::string_view split, const Evaluation& evaluation) {
  if (evaluation.bad_samples == 0) return "";
  return fmt::format("left out        {} bad {} sample{}, first: {}\n", evaluation.bad_samples,
                     split, evaluation.bad_samples == 1 ? "" : "s", evaluation.first_bad);
}

Evaluation add_up(std::span<const Scores> sums, LossKind loss, const Dataset& dataset,
                  std::optional<ConfusionMatrix> confusion) {
  Scores total;
  for (const Scores& batch : sums) total += batch;
  check(total.num_samples + total.num_bad == dataset.size(),
        "an evaluation counts every sample exactly once");
  const auto samples = static_cast<double>(total.num_samples);
  const bool is_map = !dataset.spec().target.shape.empty() && has_classes(loss);
  std::vector<ClassCounts> classes;
  if (is_map && confusion) classes = confusion->classes();
  Evaluation result{.loss = total.loss / samples,
                    .metric = {loss, total.metrics[kMainMetric] / samples, mean_iou(classes)},
                    .samples = total.num_samples,
                    .bad_samples = total.num_bad,
                    .classes = std::move(classes)};
  if (confusion) {
    result.confusion = std::make_shared<const ConfusionMatrix>(*std::move(confusion));
  }
  if (total.num_samples > 0 && !std::isfinite(result.loss)) {
    log(LogLevel::kWarning,
        fmt::format("the loss of an evaluation is {}, which rules count as not better; try a lower "
                    "--learning-rate, or look for extreme values in the samples",
                    result.loss));
  }
  if (total.num_bad == 0) return result;
  std::int64_t index = 0;
  for (const Scores& batch : sums) {
    if (batch.num_bad > 0) break;
    index += batch.num_samples;
  }
  result.first_bad = first_bad_from(index, dataset);
  dataset.bad_samples()->require_few(total.num_bad, "an evaluation");
  if (total.num_samples == 0) throw BadSampleError("no sample can be read; " + result.first_bad);
  return result;
}

Evaluator::Evaluator(Strategy& strategy, const Graph& graph, const Dataset& dataset,
                     const EvaluationOptions& options)
    : strategy_(strategy), graph_(graph), options_(options), dataset_(dataset) {
  const InputShard shard = strategy.evaluation_shard();
  for (Replica& replica : strategy.replicas()) {
    ParameterArena* values = replica.arena.get();
    if (options.uses_average) {
      const ArenaLayout layout = graph.parameter_layout();
      averages_.push_back(
          std::make_unique<ParameterArena>(layout, std::vector{Bucket{0, layout.total()}}));
      values = averages_.back().get();
    }
    parts_.push_back(std::make_unique<PartialEvaluator>(*replica.backend, graph, *values,
                                                        *replica.state, dataset, options,
                                                        shard.first + replica.index, shard.total));
  }
}

std::optional<Evaluation> Evaluator::run(const StopPoll& stop, const OnProgress& on_progress) {
  const auto begun = std::chrono::steady_clock::now();
  synchronous_job(strategy_).agree();
  const auto num_batches = static_cast<std::size_t>(parts_.front()->batches_of_all());
  std::vector<Scores> sums(num_batches);
  std::atomic<bool> stopping = false;
  std::optional<std::string_view> reason;
  strategy_.for_each_replica([&](Replica& replica) {
    if (!averages_.empty()) {
      ParameterArena& average = *averages_[static_cast<std::size_t>(replica.index)];
      const Tensor now = synchronous_job(strategy_).average(replica);
      std::ranges::copy(now.f32(), average.values().f32().begin());
      average.bump_all_versions();
    }
    parts_[static_cast<std::size_t>(replica.index)]->run(
        [&] {
          if (replica.index == 0 && !reason) reason = stop();
          if (replica.index == 0 && reason) stopping = true;
          return stopping.load();
        },
        sums, replica.index == 0 ? on_progress : OnProgress());
  });

  // Sums over all tasks: each task sends whether it was stopped and the sums of its batches, with
  // zeros for the batches of other tasks, and its confusion matrix as counts of all pairs.
  constexpr std::size_t kPerBatch = 3 + kMostMetrics;
  std::vector<double> mine{stopping ? 1.0 : 0.0};
  for (const Scores& batch : sums) {
    mine.insert(mine.end(), {batch.loss, static_cast<double>(batch.num_samples),
                             static_cast<double>(batch.num_bad)});
    mine.insert(mine.end(), batch.metrics.begin(), batch.metrics.end());
  }
  std::optional<ConfusionMatrix> confusion;
  if (parts_.front()->confusion()) confusion.emplace(graph_.num_classes());
  const auto classes = static_cast<std::size_t>(confusion ? graph_.num_classes() : 0);
  const std::size_t first_pair = mine.size();
  mine.resize(first_pair + classes * classes);
  for (const auto& part : parts_) {
    if (!confusion) break;
    for (const auto& [pair, count] : part->confusion()->counts()) {
      mine[first_pair + static_cast<std::size_t>(pair.first) * classes +
           static_cast<std::size_t>(pair.second)] += static_cast<double>(count);
    }
  }
  const std::vector<double> all = synchronous_job(strategy_).gather(mine);
  std::fill(sums.begin(), sums.end(), Scores{});
  for (std::size_t task = 0; task < all.size() / mine.size(); ++task) {
    const double* received = all.data() + task * mine.size();
    if (received[0] != 0.0) {
      stopped_by_ = reason.value_or("a request to another task");
      return std::nullopt;
    }
    for (std::size_t b = 0; b < num_batches; ++b) {
      const double* batch = received + 1 + kPerBatch * b;
      Scores received_sums{.loss = batch[0],
                           .num_samples = static_cast<std::int64_t>(batch[1]),
                           .num_bad = static_cast<std::int64_t>(batch[2])};
      std::copy_n(batch + 3, kMostMetrics, received_sums.metrics.begin());
      sums[b] += received_sums;
    }
    for (std::size_t pair = 0; pair < classes * classes; ++pair) {
      confusion->add(static_cast<std::int32_t>(pair / classes),
                     static_cast<std::int32_t>(pair % classes),
                     static_cast<std::int64_t>(received[first_pair + pair]));
    }
  }
  Evaluation total = add_up(sums, graph_.loss().kind, dataset_, std::move(confusion));
  total.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return total;
}

// The evaluator's own arena and model. Made at the first evaluation, because most workers never
// evaluate.
struct SnapshotEvaluator::Compiled {
  Compiled(Backend& backend, const Graph& graph, const Dataset& dataset,
           const EvaluationOptions& options)
      : arena(graph.parameter_layout(), {Bucket{0, graph.parameter_layout().total()}}),
        state(graph.state_layout()),
        evaluator(backend, graph, arena, state, dataset, options) {}

  ParameterArena arena;
  StateBlock state;
  PartialEvaluator evaluator;
};

SnapshotEvaluator::SnapshotEvaluator(Backend& backend, const Graph& graph, const Dataset& dataset,
                                     const EvaluationOptions& options)
    : backend_(backend), graph_(graph), dataset_(dataset), options_(options) {}

SnapshotEvaluator::~SnapshotEvaluator() = default;

std::optional<Evaluation> SnapshotEvaluator::run(const Snapshot& snapshot,
                                                 const std::function<bool()>& stop,
                                                 const OnProgress& on_progress) {
  if (compiled_ == nullptr) {
    compiled_ = std::make_unique<Compiled>(backend_, graph_, dataset_, options_);
  }
  const Snapshot own{compiled_->arena.values(), {}, compiled_->state.values};
  const Snapshot given{
      snapshot.values, {}, snapshot.state};  // an evaluation needs no optimizer slots
  check_snapshot(given, own);
  copy_snapshot(given, own);
  compiled_->arena.bump_all_versions();

  std::optional<Evaluation> result = compiled_->evaluator.run(stop, on_progress);
  // A stopped evaluation leaves its batches in the middle of the samples.
  if (!result) compiled_.reset();
  return result;
}

}  // namespace syncopate
