#include "deploy/cli/practice_flags.h"

#include <algorithm>

namespace syncopate {
namespace {

constexpr double kMostSmoothing = 0.999999;  // label smoothing is below 1

// Throws UsageError "FLAG requires WHAT" if the flag does not apply to such a run.
void require_row(const FlagSet& flags, const TrainOptions& options, std::string_view flag,
                 std::string_view what) {
  const auto row = std::ranges::find(train_option_rows(), flag, &TrainOptionRow::name);
  flags.require(flag, row->applies_to(options), what);
}

}  // namespace

void add_practice_flags(FlagSet& flags, TrainOptions& options) {
  flags.begin_group("Training practice");
  flags.add("--label-smoothing", &options.label_smoothing,
            "part of each label that is spread over all classes, in training only",
            {.least = 0.0, .most = kMostSmoothing, .example = "0.1"});
  flags.add("--accumulate", &options.strategy.micro_batches,
            "micro-batches per replica and step, whose gradients are added before the update: a "
            "step of N times --batch-size-per-replica samples, or of --batch-size in N parts",
            {.least = 1, .most = kMostMicroBatches});
  flags.add("--clip-norm", &options.strategy.clip_norm,
            "largest L2 norm of a step's gradient, to which a larger one is scaled; asynchronous "
            "workers clip their own",
            {.default_text = "none", .above = 0.0, .example = "1.0"});
  flags.add("--ema", &options.strategy.optimizer.average_decay,
            "decay of an exponential moving average of the weights, at most (1 + n) / (10 + n) at "
            "update n; evaluations use it and checkpoints contain it; running statistics are not "
            "averaged",
            {.default_text = "none", .above = 0.0, .example = "0.999"});
  EvaluationRuleOptions& rules = options.loop.rules;
  flags.add(
      "--stop-at", [&rules](const std::string& text) { rules.stop_at = parse_stop_at(text); },
      "result of an evaluation that ends training, such as accuracy=0.97, loss=0.1, mae=0.5 or "
      "mean_iou=0.9 (of label maps)",
      {.value = "METRIC=X", .default_text = "none"});
  flags.add("--early-stop",
            [&rules](const std::string& text) { rules.early_stop = parse_early_stop(text); },
            "number of evaluations without a better result that ends training, such as "
            "metric=val_loss,patience=3; patience=1 by default; min-delta=D: what counts as better",
            {.value = "RULE", .default_text = "none"});
  flags.add("--reduce-on-plateau",
            [&rules](const std::string& text) {
              rules.reduce_on_plateau = parse_reduce_on_plateau(text);
            },
            "factor of the learning rate, and number of evaluations without a better result after "
            "which it applies, such as factor=0.1,patience=2; metric=loss,patience=1 by default",
            {.value = "RULE", .default_text = "none"});
  flags.add(
      "--keep-best", &rules.keeps_best,
      "checkpoint at each evaluation; the one with the best metric of --early-stop or --stop-at, "
      "else accuracy (mean IoU of label maps, mae of numbers), is never removed");
}

void check_practice(const FlagSet& flags, const TrainOptions& options) {
  const TrainLoopOptions& loop = options.loop;
  for (const char* flag : {"--stop-at", "--early-stop", "--reduce-on-plateau", "--keep-best"}) {
    flags.require(flag, loop.evaluates(), "evaluations: --eval-every or --eval-every-steps");
    flags.require(flag, loop.eval_when == EvalWhen::kDue, "--eval-when due");
  }
  require_row(flags, options, "--clip-norm",
              "gradients that one task sums, because no server knows the norm of the whole "
              "gradient: multi-worker-mirrored, or --consistency async or ssp");
  flags.require("--keep-best", !loop.checkpoint_dir.empty(), "--checkpoint-dir DIR");
}

}  // namespace syncopate
