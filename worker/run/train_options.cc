#include "worker/run/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/weights_file.h"
#include "worker/run/exit_codes.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

using Options = const TrainOptions&;
using OptionText = std::optional<std::string>;

constexpr auto kRequired = TrainOptionRow::Agreement::kRequired;
constexpr auto kWarning = TrainOptionRow::Agreement::kWarning;
constexpr auto kNone = TrainOptionRow::Agreement::kNone;
using Form = TrainOptionRow::Form;
using Row = TrainOptionRow;

OptionText word(std::string_view text) { return std::string(text); }

// Returns the shortest text that reads back as this number.
template <typename Number>
OptionText number(Number value) {
  return fmt::format("{}", value);
}

// Returns the number as text; nothing for 0, which stands for "not set" in these fields.
template <typename Number>
OptionText if_positive(Number value) {
  if (value > Number{0}) return number(value);
  return std::nullopt;
}

OptionText if_on(bool value) {
  if (value) return "on";
  return std::nullopt;
}

template <typename Rule>
OptionText text_if(const std::optional<Rule>& rule) {
  if (!rule) return std::nullopt;
  return to_text(*rule);
}

OptionText if_not_empty(const std::filesystem::path& path) {
  if (path.empty()) return std::nullopt;
  return path.string();
}

OptionText presence(const std::filesystem::path& path) { return path.empty() ? "absent" : "given"; }

OptionText if_given(const std::string& value) {
  if (value.empty()) return std::nullopt;
  return value;
}

// Tasks may find the weights under different paths, so the bytes are compared.
OptionText weights_text(Options o) {
  if (o.init_from.empty()) return std::nullopt;
  return describe_weights(o.init_from);
}

// Tasks may find a network file under different paths, so the bytes are compared.
OptionText model_text(Options o) {
  if (o.model.empty()) return std::nullopt;
  if (!o.model.starts_with(kNetworkFile)) return o.model;
  return describe_file(o.model.substr(kNetworkFile.size()));
}

OptionText seconds_text(std::chrono::milliseconds time) {
  return if_positive(static_cast<double>(time.count()) / 1000.0);
}

const ps::ConsistencyOptions& consistency_of(Options o) { return o.strategy.consistency; }

bool shares_variables(Options o) { return strategy_of(o).shares_variables(); }
bool has_links(Options o) {
  return strategy_of(o).needs_other_tasks() || (has_stages(o) && o.cluster.world_size > 1);
}
bool may_drop_gradients(Options o) {
  return shares_variables(o) && consistency_of(o).consistency == ps::Consistency::kSync;
}
bool uses_adam(Options o) { return o.strategy.optimizer.name.starts_with("adam"); }
bool uses_momentum(Options o) { return o.strategy.optimizer.name == "momentum"; }
bool uses_step_schedule(Options o) { return o.schedule.kind == ScheduleKind::kStep; }
bool writes_checkpoints(Options o) { return !o.loop.checkpoint_dir.empty(); }
bool has_collective(Options o) {
  return strategy_of(o).takes_collective(o.strategy.collective, o.cluster.world_size);
}
bool scales_by_batch(Options o) {
  return o.learning_rate_scale == LearningRateScale::kLinear ||
         o.learning_rate_scale == LearningRateScale::kSqrt;
}
bool has_batch_norm(Options o) {
  return !has_servers(o) || o.strategy.batch_norm == BatchNormStatistics::kLocal;
}

// Whether one task knows all gradients that make an update: not where servers sum those of several
// workers.
bool has_whole_gradient(Options o) {
  const bool sums_on_servers = consistency_of(o).consistency == ps::Consistency::kSync &&
                               (has_servers(o) || consistency_of(o).backup_workers > 0);
  return !sums_on_servers || o.cluster.world_size * o.strategy.replicas == 1;
}

OptionText devices_text(Options o) {
  if (o.takes_own_gpus) return "cuda";
  std::vector<std::string> names;
  for (const Device& device : o.strategy.devices) names.push_back(to_string(device));
  return fmt::format("{}", fmt::join(names, ","));
}

OptionText device_kind(Options o) {
  return o.strategy.devices.front().kind == DeviceKind::kCpu ? "cpu" : "cuda";
}

OptionText image_size_text(Options o) {
  if (o.image.height == 0) return std::nullopt;
  return fmt::format("{}x{}", o.image.height, o.image.width);
}

OptionText cache_mb_text(Options o) {
  if (o.image.cache_mb < 0) return std::nullopt;
  return number(o.image.cache_mb);
}

OptionText augment_text(Options o) { return word(name(o.input.augment)); }

OptionText milestones_text(Options o) {
  if (o.schedule.milestones.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(o.schedule.milestones, ","));
}

OptionText cut_text(Options o) {
  if (o.strategy.cut.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(o.strategy.cut, ","));
}

OptionText compression_text(Options o) {
  const ps::CompressionOptions& compression = o.strategy.parameter_server.compression;
  if (compression.codec == ps::Codec::kTopK) return fmt::format("topk:{}", compression.fraction);
  return compression.codec == ps::Codec::kBf16 ? "bf16" : "none";
}

OptionText partition_text(Options o) {
  static constexpr std::array kNames = {"auto", "fixed", "min-size", "max-size"};
  const ps::PartitionRule& rule = o.strategy.parameter_server.partition;
  const char* name = kNames[static_cast<std::size_t>(rule.kind)];
  if (rule.kind == ps::PartitionRule::Kind::kAuto) return name;
  return fmt::format("{}:{}", name, rule.value);
}

OptionText service_time_text(Options o) {
  const ServiceTimeOptions& time = o.loop.service_time;
  switch (time.kind) {
    case ServiceTimeKind::kNone:
      return std::nullopt;
    case ServiceTimeKind::kConstant:
      return fmt::format("constant:{}", time.mean_milliseconds);
    case ServiceTimeKind::kExponential:
      return fmt::format("exponential:{}", time.mean_milliseconds);
    case ServiceTimeKind::kLognormal:
      return fmt::format("lognormal:{}:{}", time.mean_milliseconds, time.sigma);
  }
  return std::nullopt;
}

OptionText slow_text(Options o) {
  std::vector<std::string> all;
  for (const Slowness& slow : o.loop.service_time.slow) {
    all.push_back(fmt::format("worker={},factor={}", slow.worker, slow.factor));
  }
  if (all.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(all, " "));
}

OptionText pause_text(Options o) {
  std::vector<std::string> all;
  for (const Pause& pause : o.loop.service_time.pauses) {
    all.push_back(
        fmt::format("worker={},at={},for={}", pause.worker, pause.at_seconds, pause.for_seconds));
  }
  if (all.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(all, " "));
}

OptionText link_rate_text(Options o) {
  const double rate = o.strategy.link.bytes_per_second;
  if (rate <= 0.0) return std::nullopt;
  return fmt::format("{}kb", rate / 1e3);
}

// Marks a row whose flag decides what an update computes.
constexpr Row update(Row row) {
  row.decides_updates = true;
  return row;
}

constexpr std::array kRows = {
    Row{"--strategy", [](Options o) { return word(o.strategy.name); }, kRequired},
    Row{"--model", [](Options o) { return if_not_empty(o.model); }, kRequired, nullptr,
        Form::kValue, model_text},
    Row{"--head", [](Options o) { return if_given(o.network.head); }, kRequired},
    Row{"--normalize", [](Options o) { return if_given(o.network.normalize); }, kRequired},
    Row{"--data", [](Options o) { return if_not_empty(o.data); }},
    Row{"--image-size", image_size_text, kRequired},
    Row{"--exif", [](Options o) { return if_on(o.image.apply_exif); }, kRequired, nullptr,
        Form::kSwitch},
    Row{"--skip-bad-records", [](Options o) { return if_positive(o.image.skip_bad_records); },
        kRequired},
    Row{"--cache-mb", cache_mb_text},
    Row{"--image-feature", [](Options o) { return if_not_empty(o.image.fields.image); }, kRequired},
    Row{"--label-feature", [](Options o) { return if_not_empty(o.image.fields.label); }, kRequired},
    Row{"--raw-shape", [](Options o) { return if_not_empty(o.image.fields.raw_shape); }, kRequired},
    Row{"--split", [](Options o) { return if_not_empty(o.split); }, kRequired},
    Row{"--cache-dir", [](Options o) { return if_not_empty(o.cache_dir); }},
    Row{"--seed", [](Options o) { return number(o.strategy.seed); }, kRequired},
    Row{"--devices", devices_text, kRequired, nullptr, Form::kValue, device_kind},
    Row{"--precision", [](Options o) { return word(name(o.strategy.precision)); }, kRequired},
    Row{"--threads", [](Options o) { return if_positive(o.strategy.lanes); }, kWarning},
    Row{"--input-threads", [](Options o) { return word(threads_text(o.input)); }},
    Row{"--prefetch", [](Options o) { return word(prefetch_text(o.input)); }},
    Row{"--bucket-mb", [](Options o) { return number(o.strategy.bucket_bytes >> 20); }, kRequired},
    Row{"--deterministic", [](Options o) { return if_on(o.deterministic); }, kNone,
        [](Options o) { return is_synchronous(consistency_of(o)); }, Form::kSwitch},
    Row{"--replicas", [](Options o) { return number(o.strategy.replicas); }},
    Row{"--stages", [](Options o) { return number(o.strategy.stages); }, kRequired, has_stages},
    Row{"--cut", cut_text, kRequired, has_stages},
    Row{"--share-devices", [](Options o) { return if_on(o.shares_devices); }, kNone, nullptr,
        Form::kSwitch},
    Row{"--batch-size-per-replica",
        [](Options o) { return number(o.strategy.batch_size_per_replica); }, kRequired,
        [](Options o) { return o.global_batch_size == 0; }},
    Row{"--batch-size", [](Options o) { return if_positive(o.global_batch_size); }, kRequired},
    update(
        Row{"--accumulate", [](Options o) { return number(o.strategy.micro_batches); }, kRequired}),
    Row{"--epochs", [](Options o) { return number(o.loop.total_epochs); }, kRequired,
        [](Options o) { return !o.loop.total_steps; }},
    Row{"--steps", [](Options o) { return if_positive(o.loop.total_steps.value_or(0)); },
        kRequired},
    Row{"--max-seconds", [](Options o) { return if_positive(o.loop.max_seconds); }, kRequired},
    Row{"--eval-every", [](Options o) { return number(o.loop.eval_every_epochs); }, kRequired},
    Row{"--eval-every-steps", [](Options o) { return number(o.loop.eval_every_steps); }, kRequired},
    Row{"--eval-when", [](Options o) { return word(name(o.loop.eval_when)); }, kRequired},
    update(Row{"--augment", augment_text, kRequired}),
    update(
        Row{"--optimizer", [](Options o) { return word(o.strategy.optimizer.name); }, kRequired}),
    update(Row{"--learning-rate", [](Options o) { return number(o.schedule.learning_rate); },
               kRequired}),
    update(Row{"--momentum", [](Options o) { return number(o.strategy.optimizer.momentum); },
               kRequired, uses_momentum}),
    update(Row{"--nesterov", [](Options o) { return if_on(o.strategy.optimizer.nesterov); },
               kRequired, uses_momentum, Form::kSwitch}),
    update(Row{"--weight-decay",
               [](Options o) { return number(o.strategy.optimizer.weight_decay); }, kRequired}),
    update(Row{"--beta1", [](Options o) { return number(o.strategy.optimizer.beta1); }, kRequired,
               uses_adam}),
    update(Row{"--beta2", [](Options o) { return number(o.strategy.optimizer.beta2); }, kRequired,
               uses_adam}),
    update(Row{"--epsilon", [](Options o) { return number(o.strategy.optimizer.epsilon); },
               kRequired, uses_adam}),
    update(
        Row{"--label-smoothing", [](Options o) { return number(o.label_smoothing); }, kRequired}),
    update(Row{"--clip-norm", [](Options o) { return if_positive(o.strategy.clip_norm); },
               kRequired, has_whole_gradient}),
    update(Row{"--ema", [](Options o) { return if_positive(o.strategy.optimizer.average_decay); },
               kRequired}),
    Row{"--stop-at", [](Options o) { return text_if(o.loop.rules.stop_at); }, kRequired},
    Row{"--early-stop", [](Options o) { return text_if(o.loop.rules.early_stop); }, kRequired},
    update(Row{"--reduce-on-plateau",
               [](Options o) { return text_if(o.loop.rules.reduce_on_plateau); }, kRequired}),
    Row{"--keep-best", [](Options o) { return if_on(o.loop.rules.keeps_best); }, kRequired,
        writes_checkpoints, Form::kSwitch},
    update(Row{"--lr-schedule", [](Options o) { return word(name(o.schedule.kind)); }, kRequired}),
    update(Row{"--lr-milestones", milestones_text, kRequired, uses_step_schedule}),
    update(Row{"--lr-factor", [](Options o) { return number(o.schedule.factor); }, kRequired,
               uses_step_schedule}),
    update(Row{"--warmup-epochs", [](Options o) { return number(o.schedule.warmup_epochs); },
               kRequired}),
    update(Row{"--learning-rate-scale", [](Options o) { return word(name(o.learning_rate_scale)); },
               kRequired}),
    update(Row{"--reference-batch-size",
               [](Options o) { return if_positive(o.reference_batch_size); }, kRequired,
               scales_by_batch}),
    update(Row{"--batch-norm", [](Options o) { return word(name(o.strategy.batch_norm)); },
               kRequired, has_batch_norm}),
    Row{"--collective", [](Options o) { return word(o.strategy.collective); }, kRequired,
        has_collective},
    Row{"--transport", [](Options o) { return word(name(o.strategy.transport)); }, kRequired,
        [](Options o) { return has_links(o) || o.strategy.transport == Transport::kAuto; }},
    Row{"--link-delay", [](Options o) { return if_positive(o.strategy.link.delay_seconds); },
        kRequired, has_links},
    Row{"--link-rate", link_rate_text, kRequired, has_links},
    Row{"--rendezvous-timeout", [](Options o) { return seconds_text(o.rendezvous_timeout); }},
    Row{"--peer-timeout", [](Options o) { return seconds_text(o.peer_timeout); }},
    Row{"--service-time", service_time_text},
    Row{"--slow", slow_text, kNone, nullptr, Form::kRepeated},
    Row{"--pause", pause_text, kNone, nullptr, Form::kRepeated},
    update(Row{"--consistency", [](Options o) { return word(name(consistency_of(o).consistency)); },
               kRequired, shares_variables}),
    update(Row{"--max-staleness",
               [](Options o) { return number(o.strategy.consistency.max_staleness); }, kRequired,
               [](Options o) { return consistency_of(o).consistency == ps::Consistency::kSsp; }}),
    update(Row{"--backup-workers",
               [](Options o) { return number(o.strategy.consistency.backup_workers); }, kRequired,
               may_drop_gradients}),
    update(Row{"--staleness-rule",
               [](Options o) { return word(name(consistency_of(o).staleness_rule)); }, kRequired,
               shares_variables}),
    update(Row{"--compress", compression_text, kRequired, has_servers}),
    Row{"--partition", partition_text, kRequired, has_servers},
    Row{"--snapshot-every", [](Options o) { return seconds_text(o.snapshot_interval); }, kNone,
        has_servers},
    Row{"--record", [](Options o) { return if_not_empty(o.record); }, kNone, has_servers},
    Row{"--checkpoint-dir", [](Options o) { return if_not_empty(o.loop.checkpoint_dir); },
        kRequired, nullptr, Form::kValue,
        [](Options o) { return presence(o.loop.checkpoint_dir); }},
    Row{"--checkpoint-every", [](Options o) { return if_positive(o.loop.checkpoint_every_steps); },
        kRequired, writes_checkpoints},
    Row{"--keep-checkpoints", [](Options o) { return number(o.loop.keep_checkpoints); }, kNone,
        writes_checkpoints},
    Row{"--resume", [](Options o) { return if_on(o.resume); }, kRequired, writes_checkpoints,
        Form::kSwitch},
    Row{"--init-from", [](Options o) { return if_not_empty(o.init_from); }, kRequired, nullptr,
        Form::kValue, weights_text},
    Row{"--metrics", [](Options o) { return if_not_empty(o.metrics); }},
    Row{"--tensorboard", [](Options o) { return if_not_empty(o.tensorboard); }},
    Row{"--trace", [](Options o) { return if_not_empty(o.trace); }},
    Row{"--log-every", [](Options o) { return number(o.loop.log_every_steps); }},
    Row{"--no-progress", [](Options o) { return if_on(!o.show_progress); }, kNone, nullptr,
        Form::kSwitch}};

const TrainOptionRow& row_named(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &TrainOptionRow::name);
  check(row != kRows.end(), "the name of a flag of train");
  return *row;
}

std::string text_or_absent(const TrainOptionRow& row, const OptionText& text) {
  return text.value_or(row.form == Form::kSwitch ? "off" : "absent");
}

}  // namespace

std::span<const TrainOptionRow> train_option_rows() noexcept { return kRows; }

bool TrainOptionRow::applies_to(const TrainOptions& options) const {
  return applies == nullptr || applies(options);
}

std::string text_of(const TrainOptions& options, std::string_view name) {
  const TrainOptionRow& row = row_named(name);
  return text_or_absent(row, row.text(options));
}

std::vector<std::string> command_line_of(const TrainOptions& options) {
  std::vector<std::string> words;
  for (const TrainOptionRow& row : kRows) {
    const OptionText text = row.text(options);
    if (!text || !row.applies_to(options)) continue;
    const std::string flag(row.name);
    if (row.form == Form::kSwitch) {
      words.push_back(flag);
    } else if (row.form == Form::kValue) {
      words.insert(words.end(), {flag, *text});
    } else {
      std::istringstream values(*text);
      for (std::string value; values >> value;) words.insert(words.end(), {flag, value});
    }
  }
  return words;
}

std::string update_flags(const TrainOptions& options) {
  std::string flags;
  for (const TrainOptionRow& row : kRows) {
    // The rate of a cosine schedule follows from the length of the run.
    const bool is_length = row.name == "--epochs" || row.name == "--steps";
    const bool decides =
        row.decides_updates || (is_length && options.schedule.kind == ScheduleKind::kCosine);
    if (!decides || !row.applies_to(options)) continue;
    flags += fmt::format("{}{} {}", flags.empty() ? "" : " ", row.name,
                         text_or_absent(row, row.text(options)));
  }
  return flags;
}

std::vector<Agreement> agreements_of(const TrainOptions& options) {
  std::vector<Agreement> all = {{"program version", std::string(program_version())},
                                {"instruction set", std::string(name(detect_isa())), false}};
  for (const TrainOptionRow& row : kRows) {
    if (row.agreement == TrainOptionRow::Agreement::kNone) continue;
    const OptionText text = (row.compared != nullptr ? row.compared : row.text)(options);
    all.push_back({std::string(row.name), text_or_absent(row, text), row.agreement == kRequired});
  }
  return all;
}

}  // namespace syncopate
