#include "worker/run/agreements.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "models/base/isa.h"
#include "worker/run/version.h"

namespace syncopate {
namespace {

// The shortest text that gives the same number back.
std::string exact(double value) { return nlohmann::json(value).dump(); }

std::string transport_name(Transport transport) {
  if (transport == Transport::kTcp) return "tcp";
  return transport == Transport::kShm ? "shm" : "auto";
}

std::string scale_name(LearningRateScale scale) {
  if (scale == LearningRateScale::kLinear) return "linear";
  if (scale == LearningRateScale::kInverseWorkers) return "inverse-workers";
  return scale == LearningRateScale::kSqrt ? "sqrt" : "none";
}

std::string schedule_text(const ScheduleOptions& schedule) {
  static constexpr std::array kNames = {"constant", "step", "cosine"};
  std::string text = kNames[static_cast<std::size_t>(schedule.kind)];
  if (schedule.kind == ScheduleKind::kStep) {
    for (const double milestone : schedule.milestones) text += " " + exact(milestone);
    text += " by " + exact(schedule.factor);
  }
  return text;
}

}  // namespace

std::vector<Agreement> agreements_of(const TrainOptions& options) {
  const StrategyOptions& strategy = options.strategy;
  const OptimizerOptions& optimizer = strategy.optimizer;
  const TrainLoopOptions& loop = options.loop;
  std::vector<Agreement> all = {
      {"program version", std::string(program_version())},
      {"--strategy", strategy.name},
      {"--model", options.model},
      {"--devices", strategy.devices.front().kind == DeviceKind::kCpu ? "cpu" : "cuda"},
      {"--precision", std::string(name(strategy.precision))},
      {"--seed", std::to_string(strategy.seed)},
      {"--batch-size", std::to_string(options.global_batch_size)},
      {"--optimizer", optimizer.name},
      {"--learning-rate", exact(options.schedule.learning_rate)},
      {"--momentum", exact(optimizer.momentum)},
      {"--nesterov", optimizer.nesterov ? "on" : "off"},
      {"--beta1", exact(optimizer.beta1)},
      {"--beta2", exact(optimizer.beta2)},
      {"--epsilon", exact(optimizer.epsilon)},
      {"--weight-decay", exact(optimizer.weight_decay)},
      {"--lr-schedule", schedule_text(options.schedule)},
      {"--warmup-epochs", exact(options.schedule.warmup_epochs)},
      {"--learning-rate-scale", scale_name(options.learning_rate_scale)},
      {"--reference-batch-size", std::to_string(options.reference_batch_size)},
      {"--epochs or --steps", loop.total_steps ? std::to_string(*loop.total_steps) + " steps"
                                               : std::to_string(loop.total_epochs) + " epochs"},
      {"--max-seconds", exact(loop.max_seconds)},
      {"--eval-every", std::to_string(loop.eval_every_epochs)},
      {"--eval-every-steps", std::to_string(loop.eval_every_steps)},
      {"--eval-when", loop.eval_when == EvalWhen::kEnd ? "end" : "due"},
      {"--checkpoint-dir", loop.checkpoint_dir.empty() ? "absent" : "given"},
      {"--checkpoint-every", std::to_string(loop.checkpoint_every_steps)},
      {"--resume", options.resume ? "on" : "off"},
      {"--init-from", options.init_from.empty() ? "absent" : "given"},
      {"--augment", options.input.augment == Augment::kCropFlip ? "crop-flip" : "none"},
      {"--batch-norm", strategy.batch_norm == BatchNormStatistics::kSync ? "sync" : "local"},
      {"--collective", strategy.collective},
      {"--link-delay", exact(strategy.link.delay_seconds)},
      {"--link-rate", exact(strategy.link.bytes_per_second)},
      {"--transport", transport_name(strategy.transport)},
      {"--bucket-mb", std::to_string(strategy.bucket_bytes >> 20)},
      {"--threads", strategy.lanes > 0 ? std::to_string(strategy.lanes) : "absent", false},
      {"instruction set", std::string(name(detect_isa())), false},
  };
  if (options.global_batch_size == 0) {
    all.push_back({"--batch-size-per-replica", std::to_string(strategy.batch_size_per_replica)});
  }
  return all;
}

}  // namespace syncopate
