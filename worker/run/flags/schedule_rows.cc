// The flags of train about the length of a run, its batches, the optimizer and the learning rate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate {
namespace {

// The largest number of epochs. It is far above any real run, and far below the number at which
// steps per epoch times epochs overflow.
constexpr double kMostEpochs = 1e9;
constexpr double kMostSamples = 2147483648.0;  // the largest number of samples in a batch
constexpr double kMostSteps = 1e12;
constexpr double kMostSmoothing = 0.999999;  // label smoothing is below 1
constexpr std::string_view kToTheEnd =
    "compare trains every variant to the end of its budget, and evaluates then";
constexpr std::string_view kRealClock = "leave it out, or compare with --clock real";

constexpr TrainFlag::Need kSteps = {
    [](const TrainOptions& o) { return o.schedule.kind == ScheduleKind::kStep; },
    "--lr-schedule step"};
constexpr TrainFlag::Need kScales = {
    [](const TrainOptions& o) { return scales_by_batch(o.learning_rate_scale); },
    "--learning-rate-scale linear or sqrt"};
constexpr TrainFlag::Need kEvaluates = {[](const TrainOptions& o) { return o.loop.evaluates(); },
                                        "evaluations: --eval-every or --eval-every-steps"};
constexpr TrainFlag::Need kEvaluatesWhenDue = {
    [](const TrainOptions& o) { return o.loop.eval_when == EvalWhen::kDue; }, "--eval-when due"};

// Returns the names of the optimizers with a trait, such as "adam or adamw".
std::string optimizers_with(bool OptimizerRow::*trait) {
  Names names;
  for (const OptimizerRow& row : optimizers()) {
    if (row.*trait) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

// Returns a text such as "0.001 for adam and adamw, 0.01 for the others".
std::string default_learning_rates() {
  const double usual = optimizer_row({}).default_learning_rate;
  std::map<double, Names> others;
  for (const OptimizerRow& row : optimizers()) {
    if (row.default_learning_rate != usual) others[row.default_learning_rate].push_back(row.name);
  }
  std::string text;
  for (const auto& [rate, names] : others) {
    text += fmt::format("{} for {}, ", rate, fmt::join(names, " and "));
  }
  return text + fmt::format("{} for the others", usual);
}

std::vector<double> parse_milestones(const std::string& text) {
  std::vector<double> milestones;
  std::istringstream items(text);
  for (std::string item; std::getline(items >> std::ws, item, ',');) {
    const std::optional<double> epoch = parse_number<double>(item);
    if (!epoch) {
      throw UsageError(fmt::format(
          "--lr-milestones {}: expected epochs with commas between, such as 80,120", text));
    }
    milestones.push_back(*epoch);
  }
  return milestones;
}

FlagText milestones_text(const TrainOptions& o) {
  if (o.schedule.milestones.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(o.schedule.milestones, ","));
}

template <typename Rule>
FlagText rule_text(const std::optional<Rule>& rule) {
  return rule ? FlagText(to_text(*rule)) : std::nullopt;
}

// Whether one task knows all gradients that make an update. It does not where servers sum the
// gradients of several workers.
bool has_whole_gradient(const TrainOptions& o) {
  const ps::ConsistencyOptions& consistency = o.strategy.consistency;
  const bool sums_on_servers = consistency.consistency == ps::Consistency::kSync &&
                               (has_servers(o) || consistency.backup_workers > 0);
  return !sums_on_servers || o.cluster.world_size * o.strategy.replicas == 1;
}

// All of them decide how a step updates the variables.
std::vector<TrainFlag> optimizer_flags() {
  static const std::string kMomentum =
      "--optimizer " + optimizers_with(&OptimizerRow::has_momentum);
  static const std::string kMoments = "--optimizer " + optimizers_with(&OptimizerRow::has_moments);
  const TrainFlag::Need momentum = {
      [](const TrainOptions& o) { return optimizer_row(o.strategy.optimizer).has_momentum; },
      kMomentum};
  const TrainFlag::Need moments = {
      [](const TrainOptions& o) { return optimizer_row(o.strategy.optimizer).has_moments; },
      kMoments};
  const std::string with_moments = "; only with " + kMoments;
  return {
      {.name = "--optimizer",
       .help = "update rule of the weights",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.name; },
       .rules = {.choices = names_of(optimizers())}},
      {.name = "--learning-rate",
       .help = "base learning rate",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.schedule.learning_rate; },
       .rules = {.default_text = default_learning_rates(), .above = 0.0, .example = "0.001"}},
      {.name = "--momentum",
       .help = "momentum coefficient of " + kMomentum,
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.momentum; },
       .needs = {momentum}},
      {.name = "--nesterov",
       .help = "use Nesterov's momentum; only with " + kMomentum,
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.nesterov; },
       .needs = {momentum}},
      {.name = "--weight-decay",
       .help = "weight decay: X * weights is added to the gradient; with adamw, learning rate * X "
               "* weights is instead subtracted from the weights",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.weight_decay; }},
      {.name = "--beta1",
       .help = "decay rate of the first moment" + with_moments,
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.beta1; },
       .needs = {moments}},
      {.name = "--beta2",
       .help = "decay rate of the second moment" + with_moments,
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.beta2; },
       .needs = {moments}},
      {.name = "--epsilon",
       .help = "small number added to the denominator of the update" + with_moments,
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.epsilon; },
       .needs = {moments}},
      {.name = "--lr-schedule",
       .help = "learning rate schedule",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.schedule.kind); }},
      {.name = "--lr-milestones",
       .help = "epochs, such as 80,120, after each of which the learning rate is multiplied by "
               "--lr-factor. --lr-schedule step requires this flag; other schedules refuse it",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) { o.schedule.milestones = parse_milestones(text); };
       },
       .rules = {.value = "EPOCHS", .default_text = "none"},
       .text = milestones_text,
       .needs = {kSteps}},
      {.name = "--lr-factor",
       .help = "factor that multiplies the learning rate at each of --lr-milestones; only with "
               "--lr-schedule step",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.schedule.factor; },
       .rules = {.above = 0.0, .example = "0.1"},
       .needs = {kSteps}},
      {.name = "--warmup-epochs",
       .help = "length of the warm-up in epochs. In the warm-up, the learning rate rises linearly "
               "to its full value. The rise starts at 1 % of the full value. If "
               "--learning-rate-scale linear or sqrt makes the full value larger than "
               "--learning-rate, the rise starts at --learning-rate instead",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.schedule.warmup_epochs; },
       .rules = {.least = 0.0}},
      {.name = "--learning-rate-scale",
       .help = "factor that multiplies --learning-rate (linear: global batch size / "
               "--reference-batch-size; sqrt: square root of this ratio; inverse-workers: 1 / "
               "number of workers)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.learning_rate_scale); }},
      {.name = "--reference-batch-size",
       .help = "batch size, in samples, that --learning-rate was chosen for; only with "
               "--learning-rate-scale linear or sqrt",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.reference_batch_size; },
       .rules = {.default_text = "the batch size of one replica", .least = 1},
       .is_unset_at_zero = true,
       .needs = {kScales}},
  };
}

}  // namespace

std::vector<TrainFlag> schedule_flags() {
  std::vector<TrainFlag> flags = {
      {.name = "--epochs",
       .help = "number of passes over the training data. Samples at the end of a pass that do not "
               "fill a batch are skipped; for synchronous replicas, this batch is the global batch",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.total_epochs; },
       .rules = {.least = 1, .most = kMostEpochs},
       .needs = {{[](const TrainOptions& o) { return !o.loop.total_steps; }, ""}},
       .sets_length = true,
       .in_comparison = kOfCompareAndPlan},
      {.name = "--steps",
       .help = "number of updates after which training ends; cannot be combined with --epochs",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.total_steps; },
       .rules = {.default_text = "as many updates as the default of --epochs takes",
                 .least = 1,
                 .most = kMostSteps,
                 .excludes = {"--epochs"}},
       .sets_length = true,
       .in_comparison = {InComparison::kSetByCompare,
                         "give --budget updates --updates N before the --"}},
      {.name = "--max-seconds",
       .help =
           "training time after which training ends; a restarted process counts its time from zero",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.max_seconds; },
       .rules = {.unit = "seconds", .default_text = "none", .above = 0.0, .example = "60 or 0.5"},
       .is_unset_at_zero = true,
       .in_comparison = {InComparison::kSetByCompare,
                         "give --budget seconds --seconds S before the --"}},
      {.name = "--batch-size-per-replica",
       .help = "number of samples per replica in each step; with --accumulate, in each micro-batch",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.batch_size_per_replica; },
       .rules = {.least = 1, .most = kMostSamples},
       .needs = {{[](const TrainOptions& o) { return o.global_batch_size == 0; }, ""}},
       .in_comparison = kOfVariants},
      {.name = "--batch-size",
       .help = "number of samples of all replicas together in each step; not together with "
               "--batch-size-per-replica",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.global_batch_size; },
       .rules = {.default_text = "the sum of --batch-size-per-replica over all replicas",
                 .least = 1,
                 .most = kMostSamples,
                 .excludes = {"--batch-size-per-replica"}},
       .is_unset_at_zero = true,
       .in_comparison = {InComparison::kSetByVariant,
                         "give --batch-size-per-replica before the --"}},
  };
  for (TrainFlag& flag : optimizer_flags()) {
    flag.decides_updates = true;
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<TrainFlag> practice_flags() {
  return {
      {.name = "--label-smoothing",
       .help = "fraction of each label's probability that is spread evenly over all classes; only "
               "training smooths labels, evaluations do not",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.label_smoothing; },
       .rules = {.least = 0.0, .most = kMostSmoothing, .example = "0.1"},
       .decides_updates = true},
      {.name = "--accumulate",
       .help =
           "number of micro-batches per replica in each step; the update uses the sum of their "
           "gradients. Each replica computes N times --batch-size-per-replica samples in a "
           "step. --batch-size is still the number of samples of all replicas together in a step",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.micro_batches; },
       .rules = {.least = 1, .most = kMostMicroBatches},
       .decides_updates = true,
       .in_comparison = {InComparison::kRefused,
                         "give a larger --batch-size-per-replica before the --"}},
      {.name = "--clip-norm",
       .help = "largest L2 norm of a step's gradient; a gradient with a larger norm is scaled down "
               "to this norm. Each asynchronous worker clips its own gradient",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.clip_norm; },
       .rules = {.default_text = "none", .above = 0.0, .example = "1.0"},
       .is_unset_at_zero = true,
       .needs = {{has_whole_gradient,
                  "gradients that one task sums, because no server knows the norm of the whole "
                  "gradient: multi-worker-mirrored, or --consistency async or ssp"}},
       .decides_updates = true,
       .in_comparison = {InComparison::kRealOnly, kRealClock}},
      {.name = "--ema",
       .help = "decay of an exponential moving average of the weights; at update n the decay is at "
               "most (1 + n) / (10 + n). Evaluations use the average, and checkpoints contain it. "
               "Running statistics of batch norm are not averaged",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.optimizer.average_decay; },
       .rules = {.default_text = "none", .above = 0.0, .example = "0.999"},
       .is_unset_at_zero = true,
       .decides_updates = true,
       .in_comparison = {InComparison::kRealOnly, kRealClock}},
      {.name = "--stop-at",
       .help = "end training when an evaluation reaches X or better, such as accuracy=0.97, "
               "loss=0.1, mae=0.5, or mean_iou=0.9 for label maps",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) { o.loop.rules.stop_at = parse_stop_at(text); };
       },
       .rules = {.value = "METRIC=X", .default_text = "none"},
       .text = [](const TrainOptions& o) { return rule_text(o.loop.rules.stop_at); },
       .needs = {kEvaluates, kEvaluatesWhenDue},
       .in_comparison = {InComparison::kRefused, kToTheEnd}},
      {.name = "--early-stop",
       .help =
           "end training after N evaluations in a row without a new best result. Example of RULE: "
           "metric=val_loss,patience=3,min-delta=0.01. `patience` is N (1 unless given). A new "
           "best result must be better than the old one by more than `min-delta` (0 unless given)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) { o.loop.rules.early_stop = parse_early_stop(text); };
       },
       .rules = {.value = "RULE", .default_text = "none"},
       .text = [](const TrainOptions& o) { return rule_text(o.loop.rules.early_stop); },
       .needs = {kEvaluates, kEvaluatesWhenDue},
       .in_comparison = {InComparison::kRefused, kToTheEnd}},
      {.name = "--reduce-on-plateau",
       .help = "multiply the learning rate by `factor` after `patience` evaluations in a row "
               "without a new best result. Example of RULE: factor=0.1,patience=2. `metric` is "
               "loss unless given, and `patience` is 1 unless given",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.loop.rules.reduce_on_plateau = parse_reduce_on_plateau(text);
         };
       },
       .rules = {.value = "RULE", .default_text = "none"},
       .text = [](const TrainOptions& o) { return rule_text(o.loop.rules.reduce_on_plateau); },
       .needs = {kEvaluates, kEvaluatesWhenDue},
       .decides_updates = true,
       .in_comparison = {InComparison::kRefused, kToTheEnd}},
      {.name = "--keep-best",
       .help = "write a checkpoint at each evaluation, and never remove the best one. The metric "
               "that decides is taken from --early-stop, else from --stop-at; else it is accuracy "
               "(mean IoU for label maps, mean absolute error for targets that are numbers)",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.rules.keeps_best; },
       .needs = {kEvaluates, kEvaluatesWhenDue, kCheckpointDir},
       .in_comparison = {InComparison::kRefused, kToTheEnd}},
  };
}

}  // namespace syncopate
