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
}

}  // namespace syncopate
