#include "worker/train_loop.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/train_step.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

// Kinds of requests to stop, as they travel (strategies/variable_store.h).
constexpr std::array<std::string_view, kStopKinds> kStopNames = {"SIGINT", "SIGTERM", "SIGUSR1",
                                                                 "a request"};

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Sums since some line or since an epoch began.
struct Tally {
  double loss = 0.0;
  double seconds = 0.0;
  std::int64_t steps = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;

  void add(const Scores& scores, double step_seconds) {
    loss += scores.loss;
    seconds += step_seconds;
    ++steps;
    correct += scores.num_correct;
    samples += scores.num_samples;
  }
  double mean_loss() const {
    return steps > 0 ? loss / static_cast<double>(steps) : std::numeric_limits<double>::quiet_NaN();
  }
  double accuracy() const {
    return ratio(static_cast<double>(correct), static_cast<double>(samples));
  }
  double samples_per_second() const { return ratio(static_cast<double>(samples), seconds); }
  static double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }
};

bool all_finite(const Tensor& values) {
  // 0 * x is 0 for every finite x and NaN otherwise: a sum without branches, which the compiler
  // unrolls.
  std::array<float, 8> sums{};
  const std::span<const float> elements = values.f32();
  for (std::size_t i = 0; i < elements.size(); ++i) sums[i % sums.size()] += 0.0F * elements[i];
  return std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == 0.0F; });
}

bool all_finite(const Snapshot& snapshot) {
  return all_finite(snapshot.values) && all_finite(snapshot.state) &&
         std::all_of(snapshot.slots.begin(), snapshot.slots.end(),
                     [](const Snapshot::Slot& slot) { return all_finite(slot.values); });
}

std::string hash_values(const Tensor& values) {
  const std::span<const std::byte> bytes = values.bytes();
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(
                    hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
  return text.data();
}

// The same place under one name: an epoch that has no whole batch left is the start of the next.
DataPosition normalised(DataPosition position, std::int64_t dataset_size,
                        std::int64_t global_batch) {
  if (position.offset + global_batch > dataset_size) return {position.epoch + 1, 0};
  return position;
}

class TrainLoop {
 public:
  TrainLoop(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start)
      : run_(run), options_(options), progress_(start) {
    if (!options_.checkpoint_dir.empty() && progress_.step > 0) saved_step_ = progress_.step;
  }

  TrainOutcome run() {
    total_steps_ = progress_.step + remaining_steps();
    communication_at_start_ = communication_before_line_ = communication();
    while (!finished()) {
      const std::int64_t epoch_before = position().epoch;
      train_one();
      const bool epoch_ended = position().epoch != epoch_before;
      if (progress_.step % options_.log_every_steps == 0 || finished()) write_step_line();
      const auto signal = asked_to_stop();
      if (signal || finished() || checkpoint_due(epoch_ended)) save();
      if (signal) return stopped(*signal);
      if (!finished() && epoch_ended && evaluation_due() && !evaluate()) {
        save();
        return stopped(run_.evaluator.stopped_by());
      }
    }
    require_finite();
    if (!evaluate()) return stopped(run_.evaluator.stopped_by());
    return outcome();
  }

 private:
  DataPosition position() const {
    return normalised(progress_.position, run_.dataset_size, run_.global_batch);
  }
  double epochs() const {
    return epochs_at(progress_.position, run_.dataset_size, run_.global_batch);
  }
  bool finished() const { return remaining_steps() <= 0; }
  std::int64_t remaining_steps() const {
    if (options_.total_steps) return *options_.total_steps - progress_.step;
    const DataPosition now = position();
    const std::int64_t left_in_epoch = (run_.dataset_size - now.offset) / run_.global_batch;
    return left_in_epoch +
           (options_.total_epochs - now.epoch - 1) * (run_.dataset_size / run_.global_batch);
  }
  bool checkpoint_due(bool epoch_ended) const {
    if (options_.checkpoint_every_steps == 0) return epoch_ended;
    return progress_.step % options_.checkpoint_every_steps == 0;
  }
  bool evaluation_due() const {
    return options_.eval_every_epochs > 0 && position().epoch % options_.eval_every_epochs == 0;
  }

  void train_one() {
    if (position().offset == 0) epoch_ = {};
    learning_rate_ = run_.schedule.learning_rate(epochs());
    if (const auto signal = run_.stop()) note_stop(*signal);
    const auto begun = Clock::now();
    const StepReport report = train_step(
        run_.strategy, run_.input,
        {.learning_rate = static_cast<float>(learning_rate_), .step = progress_.step + 1}, stops_);
    const double seconds = seconds_since(begun);
    const Scores& scores = report.scores;
    ++progress_.step;
    stops_of_all_ = report.stops;
    if (run_.membership != nullptr) run_.membership->report_step(progress_.step);
    if (!std::isfinite(scores.loss)) {
      throw diverged(std::isnan(scores.loss) ? "the loss is not a number" : "the loss is infinite");
    }
    progress_.samples += scores.num_samples;
    progress_.position = run_.input.position();
    for (Tally* tally : {&all_, &epoch_, &line_}) tally->add(scores, seconds);
    show(scores.loss);
  }

  void note_stop(std::string_view signal) {
    const auto known = std::find(kStopNames.begin(), kStopNames.end(), signal);
    const auto kind = known == kStopNames.end() ? kStopNames.end() - 1 : known;
    stops_[static_cast<std::size_t>(kind - kStopNames.begin())] = 1;
  }

  // A signal that reached some task, as all tasks learned of it with the last step's gradients.
  std::optional<std::string_view> asked_to_stop() const {
    for (std::size_t kind = 0; kind < kStopKinds; ++kind) {
      if (stops_of_all_[kind] > 0) return kStopNames[kind];
    }
    return std::nullopt;
  }

  void show(double loss) {
    shown_loss_ = shown_steps_++ == 0 ? loss : 0.95 * shown_loss_ + 0.05 * loss;
    const double seconds_per_step = all_.seconds / static_cast<double>(all_.steps);
    const std::int64_t per_epoch = run_.dataset_size / run_.global_batch;
    run_.display.update({.epoch = (progress_.step - 1) / per_epoch + 1,
                         .total_epochs = (total_steps_ + per_epoch - 1) / per_epoch,
                         .step = progress_.step,
                         .total_steps = total_steps_,
                         .loss = shown_loss_,
                         .accuracy = line_.accuracy(),
                         .samples_per_second = all_.samples_per_second(),
                         .remaining_seconds = seconds_per_step *
                                              static_cast<double>(total_steps_ - progress_.step)});
  }

  void write_step_line() {
    const double waited = run_.input.counters().wait_seconds;
    const CommunicationTimes times = communication();
    const double steps = static_cast<double>(std::max<std::int64_t>(line_.steps, 1));
    const double exposed = times.exposed_seconds - communication_before_line_.exposed_seconds;
    const double under_way = times.under_way_seconds - communication_before_line_.under_way_seconds;
    const double input_wait = waited - waited_before_line_;
    run_.metrics.write(
        StepMetrics{.step = progress_.step,
                    .epoch = epochs(),
                    .loss = line_.mean_loss(),
                    .accuracy = line_.accuracy(),
                    .learning_rate = learning_rate_,
                    .samples = progress_.samples,
                    .seconds = all_.seconds,
                    .samples_per_second = line_.samples_per_second(),
                    .input_wait_fraction = Tally::ratio(input_wait, line_.seconds),
                    .compute_seconds = std::max(0.0, line_.seconds - input_wait - exposed) / steps,
                    .communication_exposed_seconds = exposed / steps,
                    .communication_hidden_seconds = std::max(0.0, under_way - exposed) / steps});
    waited_before_line_ = waited;
    communication_before_line_ = times;
    line_ = {};
  }

  CommunicationTimes communication() const {
    return run_.strategy.replicas().front().variables->times();
  }

  // False when it was cut short by a request to stop.
  bool evaluate() {
    test_ = run_.evaluator.run(run_.stop);
    if (!test_) return false;
    run_.metrics.write(EvalMetrics{.step = progress_.step,
                                   .epoch = epochs(),
                                   .test_loss = test_->loss,
                                   .test_accuracy = test_->accuracy,
                                   .samples = test_->samples,
                                   .seconds = test_->seconds});
    std::array<char, 160> line{};
    std::snprintf(
        line.data(), line.size(),
        "step %lld, epoch %.2f: test accuracy %.2f%%, test loss %.4f (%lld samples, %.1f s)",
        static_cast<long long>(progress_.step), epochs(), 100.0 * test_->accuracy, test_->loss,
        static_cast<long long>(test_->samples), test_->seconds);
    run_.display.note(line.data());
    return true;
  }

  void save() {
    if (options_.checkpoint_dir.empty() || saved_step_ == progress_.step) return;
    run_.strategy.agree();
    require_finite();  // a loss is finite one step longer than the weights it will ruin
    saved_step_ = progress_.step;
    if (!run_.strategy.is_chief()) return;
    const auto path = checkpoint_path(options_.checkpoint_dir, progress_.step);
    save_checkpoint(path, run_.graph, run_.strategy.snapshot(), run_.optimizer, progress_);
    prune_checkpoints(options_.checkpoint_dir, options_.keep_checkpoints);
  }

  void require_finite() const {
    if (!all_finite(run_.strategy.snapshot())) {
      throw diverged("the weights or the optimizer's slots are no longer finite");
    }
  }

  DivergenceError diverged(const std::string& what) const {
    std::array<char, 32> rate{};
    std::snprintf(rate.data(), rate.size(), "%g", learning_rate_);
    return DivergenceError(what + " at step " + std::to_string(progress_.step) +
                           ", with learning rate " + rate.data() + "; " +
                           (saved_step_ > 0
                                ? "the last good checkpoint is " +
                                      checkpoint_path(options_.checkpoint_dir, saved_step_).string()
                                : std::string("no checkpoint was written")) +
                           "; try a lower --learning-rate or --warmup-epochs");
  }

  TrainOutcome stopped(std::string_view signal) {
    // Nobody says "saved" before the chief's file stands: it comes here only then.
    constexpr double kDone = 1.0;
    run_.strategy.gather({&kDone, 1});
    TrainOutcome result = outcome();
    result.stopped_by = std::string(signal);
    result.test.reset();
    return result;
  }

  TrainOutcome outcome() {
    TrainOutcome result;
    result.progress = progress_;
    if (saved_step_ > 0 && saved_step_ == progress_.step) {
      result.checkpoint = checkpoint_path(options_.checkpoint_dir, saved_step_);
    }
    result.test = test_;
    result.seconds = all_.seconds;
    result.samples_per_second = all_.samples_per_second();
    result.train_loss = epoch_.mean_loss();
    result.input_wait_fraction = Tally::ratio(run_.input.counters().wait_seconds, all_.seconds);
    result.communication_exposed_fraction = Tally::ratio(
        communication().exposed_seconds - communication_at_start_.exposed_seconds, all_.seconds);
    result.weights_hash = hash_values(run_.strategy.snapshot().values);
    return result;
  }

  const TrainingRun& run_;
  const TrainLoopOptions& options_;
  Progress progress_;
  std::int64_t total_steps_ = 0;
  std::int64_t saved_step_ = 0;  // 0: none
  double learning_rate_ = 0.0;
  Tally all_;    // this process
  Tally epoch_;  // since the epoch began
  Tally line_;   // since the last line of metrics
  double waited_before_line_ = 0.0;
  CommunicationTimes communication_at_start_;
  CommunicationTimes communication_before_line_;
  std::array<int, kStopKinds> stops_{};         // that reached this task
  std::array<int, kStopKinds> stops_of_all_{};  // that reached any, at the last step
  double shown_loss_ = 0.0;                     // smoothed, for people
  std::int64_t shown_steps_ = 0;
  std::optional<Evaluation> test_;
};

}  // namespace

double epochs_at(DataPosition position, std::int64_t dataset_size, std::int64_t global_batch) {
  const DataPosition now = normalised(position, dataset_size, global_batch);
  const std::int64_t trained_per_epoch = dataset_size / global_batch * global_batch;
  return static_cast<double>(now.epoch) +
         static_cast<double>(now.offset) / static_cast<double>(trained_per_epoch);
}

TrainOutcome train(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start) {
  try {
    TrainOutcome outcome = TrainLoop(run, options, start).run();
    run.display.finish();
    return outcome;
  } catch (...) {
    run.display.finish();  // the error gets a line of its own
    throw;
  }
}

}  // namespace syncopate
