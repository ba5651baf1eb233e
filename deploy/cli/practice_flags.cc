#include "deploy/cli/practice_flags.h"

namespace syncopate {
namespace {

constexpr double kMostSmoothing = 0.999999;  // label smoothing is below 1

}  // namespace

void add_practice_flags(FlagSet& flags, TrainOptions& options) {
  flags.begin_group("Training practice");
  flags.add("--label-smoothing", &options.label_smoothing,
            "part of each label that is spread over all classes, in training only",
            {.least = 0.0, .most = kMostSmoothing, .example = "0.1"});
  EvaluationRuleOptions& rules = options.loop.rules;
  flags.add("--stop-at", [&rules](const std::string& text) { rules.stop_at = parse_stop_at(text); },
            "result of an evaluation that ends training, such as accuracy=0.97 or loss=0.1",
            {.value = "METRIC=X", .default_text = "none"});
  flags.add("--early-stop",
            [&rules](const std::string& text) { rules.early_stop = parse_early_stop(text); },
            "number of evaluations without a better result that ends training, such as "
            "metric=val_loss,patience=3; min-delta=D: what counts as better",
            {.value = "RULE", .default_text = "none"});
  flags.add("--reduce-on-plateau",
            [&rules](const std::string& text) {
              rules.reduce_on_plateau = parse_reduce_on_plateau(text);
            },
            "factor of the learning rate, and number of evaluations without a better result after "
            "which it applies, such as factor=0.1,patience=2; metric=loss by default",
            {.value = "RULE", .default_text = "none"});
  flags.add("--keep-best", &rules.keeps_best,
            "checkpoint at each evaluation; the one with the best accuracy, or the best metric of "
            "--early-stop, is never removed");
}

void check_practice(const FlagSet& flags, const TrainOptions& options) {
  const TrainLoopOptions& loop = options.loop;
  for (const char* flag : {"--stop-at", "--early-stop", "--reduce-on-plateau", "--keep-best"}) {
    flags.require(flag, loop.evaluates(), "evaluations: --eval-every or --eval-every-steps");
    flags.require(flag, loop.eval_when == EvalWhen::kDue, "--eval-when due");
  }
  flags.require("--keep-best", !loop.checkpoint_dir.empty(), "--checkpoint-dir DIR");
}

}  // namespace syncopate
