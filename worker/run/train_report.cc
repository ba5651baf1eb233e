#include "worker/run/train_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "strategies/input_shard.h"
#include "strategies/pipeline/stages.h"
#include "worker/run/exit_codes.h"
#include "worker/run/run_data.h"
#include "worker/run/run_sizes.h"
#include "worker/train/class_table.h"
#include "worker/train/metrics.h"

namespace syncopate {
namespace {

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts ru_maxrss in KiB
}

// Returns the number of replicas of all tasks, synchronous or not.
int participants(const TrainOptions& options, const Strategy& strategy) {
  if (has_stages(options)) return 1;
  return std::max(strategy.replicas_in_sync(),
                  options.cluster.world_size * options.strategy.replicas);
}

std::vector<double> in_percent(std::vector<double> fractions) {
  for (double& fraction : fractions) fraction *= 100.0;
  return fractions;
}

// Describes an emulated link, "links slowed on purpose: 1 ms one way, 125 MB/s each way".
std::string describe_link(const Link& link) {
  std::string text = "links slowed on purpose:";
  if (link.delay_seconds > 0.0) text += fmt::format(" {:g} ms one way", 1e3 * link.delay_seconds);
  if (link.bytes_per_second > 0.0) {
    text += link.delay_seconds > 0.0 ? "," : "";
    text += fmt::format(" {:g} MB/s each way", link.bytes_per_second / 1e6);
  }
  return text;
}

// Returns which part of a step each stage waits for others, if a stage takes time as it has work: T
// = sum of the shares + (M - 1) times the largest. With equal stages that is (N - 1) / (M + N - 1),
// Huang et al. 2019, section 2.3.
std::vector<double> waits_of_stages(std::span<const double> shares, int micro_batches) {
  const double step = 1.0 + (micro_batches - 1) * *std::ranges::max_element(shares);
  std::vector<double> waits;
  for (const double share : shares) waits.push_back(1.0 - micro_batches * share / step);
  return waits;
}

std::string percents(std::span<const double> fractions) {
  std::vector<std::string> texts;
  for (const double fraction : fractions) texts.push_back(fmt::format("{:.0f}", 100.0 * fraction));
  return fmt::format("{} %", fmt::join(texts, ", "));
}

std::string describe_pipeline(const TrainOptions& options, const Graph& graph,
                              std::int64_t global_batch) {
  const int count = options.strategy.stages;
  const int parts = options.strategy.micro_batches;
  const std::vector<Stage> stages = choose_stages(graph, count, options.strategy.cut, "");
  std::int64_t all = 1;  // at least, so that it divides
  for (const Stage& stage : stages) all += stage.multiply_adds;
  std::vector<double> shares;
  for (const Stage& stage : stages) {
    shares.push_back(static_cast<double>(stage.multiply_adds) / static_cast<double>(all));
  }
  std::string line = fmt::format(
      "pipeline: {} stages{}{}, {} micro-batch{} of at most {} samples; by their work they wait {} "
      "of a step",
      count, options.cluster.world_size > 1 ? ", each a task" : "",
      count > 1
          ? fmt::format(", cut behind {} ({} of the work)", describe_cut(stages), percents(shares))
          : "",
      parts, parts == 1 ? "" : "es", (global_batch + parts - 1) / parts,
      percents(waits_of_stages(shares, parts)));
  if (*std::ranges::max_element(shares) > 1.5 / count) {
    return line + ": the largest limits the speed; --cut chooses other places";
  }
  if (const int more = 4 * count; parts < more) {
    line += fmt::format(" (--accumulate {}: {})", more, percents(waits_of_stages(shares, more)));
  }
  return line;
}

// Returns how displacements make an update together; "" if each makes one alone.
std::string describe_merge(const ps::ConsistencyOptions& consistency) {
  if (consistency.consistency != ps::Consistency::kQuorum) return "";
  if (consistency.quorum == 0) return ", and an update waits for all workers";
  return fmt::format(", and an update waits for {} workers, then {:g} s for the others",
                     consistency.quorum, consistency.grace);
}

}  // namespace

std::string describe_outer_step(const LocalUpdateOptions& options) {
  const OuterRuleOptions outer = outer_options(options);
  return fmt::format("{}: learning rate {:g}, {}momentum {:g}{}", options.outer,
                     outer.learning_rate, outer.nesterov ? "Nesterov " : "", outer.momentum,
                     outer.scale_by_rate ? ", scaled by the learning rate" : "");
}

void describe_run(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  Strategy& strategy, const ScheduleOptions& schedule, std::int64_t global_batch,
                  ProgressDisplay& display) {
  const std::int64_t per_update = samples_per_update(options, global_batch);
  display.note(fmt::format("{}; {} batches of {} per epoch",
                           describe_data(data, text_of(options, "--data")),
                           data.train->size() / per_update, per_update));
  display.note(fmt::format("{}, {} parameters; {}", text_of(options, "--model"),
                           graph.num_parameters(),
                           strategy.replicas().front().backend->description()));
  if (options.loop.rules.any() && data.validation == nullptr) {
    display.note(
        "no validation split: rules such as --early-stop and --keep-best watch the test samples, "
        "so "
        "the test result flatters the network; give --split val=0.1");
  }
  const std::string name = text_of(options, "--strategy");
  const int replicas = strategy.replicas_in_sync();
  const StrategyRow& row = strategy_of(options);
  const bool sums_over_tasks = row.tasks == StrategyRow::Tasks::kMany;
  if (replicas > 1 || sums_over_tasks) {
    const int tasks = options.cluster.world_size;
    display.note(fmt::format("{}: {} replica{} in {} task{}, {} samples per step, {} per replica",
                             name, replicas, replicas == 1 ? "" : "s", tasks, tasks == 1 ? "" : "s",
                             global_batch, share_of_replica(global_batch, 0, replicas).end));
  }
  if (const auto local = local_updates_of(options)) {
    display.note(fmt::format(
        "{}: {}{} after every {} step{}{}; outer step {}; optimizer state of the workers: {}", name,
        local->local_from
            ? fmt::format("sums of gradients until epoch {:g}, then ", *local->local_from)
            : "",
        pushes_displacements(*local) ? "each worker pushes its displacement" : "an exchange",
        local->sync_every, local->sync_every == 1 ? "" : "s",
        local->sync_groups > 1 ? fmt::format(", the mean of a task's replicas after every {}",
                                             local->sync_every / local->sync_groups)
                               : describe_merge(options.strategy.consistency),
        describe_outer_step(*local), syncopate::name(local->inner_state)));
  }
  if (has_stages(options)) display.note(describe_pipeline(options, graph, global_batch));
  if (participants(options, strategy) == 1) {
    if (row.has_replicas_of_one_task()) {
      display.note(name + " trains one replica here; --replicas N trains more");
    } else if (sums_over_tasks) {
      display.note(
          "this task is alone; start several: syncopate launch --workers N -- train ..., srun, "
          "mpirun or torchrun");
    }
  }
  if (!is_synchronous(options.strategy.consistency)) {
    const int workers = count_workers(options);
    const int backups = options.strategy.consistency.backup_workers;
    const std::string waits = backups > 0 ? fmt::format("the slowest {} not waited for", backups)
                                          : std::string("without a common step");
    display.note(fmt::format("{}: {} worker{}, {}, {} samples per step", name, workers,
                             workers == 1 ? "" : "s", waits, per_update));
  }
  if (!options.strategy.link.is_plain()) display.note(describe_link(options.strategy.link));
  if (options.learning_rate_scale != LearningRateScale::kNone) {
    display.note(fmt::format("learning rate {:g}, scaled to {:g}", options.schedule.learning_rate,
                             schedule.learning_rate));
  }
  for (const std::string& note : options.cluster.notes) display.note(note);
}

Summary summary_of(const TrainOptions& options, const Graph& graph, std::int64_t global_batch,
                   Strategy& strategy, const TrainOutcome& outcome) {
  const ps::StalenessHistogram staleness = merge_staleness(outcome.staleness);
  const Evaluation none{.loss = std::nan(""), .metric = {graph.loss().kind, std::nan("")}};
  return {.strategy = text_of(options, "--strategy"),
          .model = text_of(options, "--model"),
          .data = text_of(options, "--data"),
          .device = strategy.replicas().front().backend->description(),
          .replicas = participants(options, strategy),
          .global_batch = samples_per_update(options, global_batch),
          .steps = outcome.progress.at.step,
          .samples = outcome.progress.at.samples,
          .seconds = outcome.seconds,
          .samples_per_second = outcome.samples_per_second,
          .train_loss = outcome.train_loss,
          .test = outcome.test.value_or(none),
          .validation = outcome.validation,
          .train_bad_samples = outcome.num_bad_in_epoch,
          .staleness_mean = staleness.mean(),
          .staleness_max = static_cast<std::int64_t>(staleness.max()),
          .input_wait_fraction = outcome.input_wait_fraction,
          .communication_exposed_fraction = outcome.communication_exposed_fraction,
          .stage_idle_fractions = outcome.stage_idle_fractions,
          .peak_memory_bytes = peak_memory_bytes(),
          .weights_hash = outcome.weights_hash,
          .staleness = outcome.staleness,
          .repeated_batches = outcome.repeated_batches,
          .bytes_per_sample = outcome.bytes_per_sample,
          .rounds = strategy_of(options).has_rounds
                        ? std::optional(
                              Summary::Rounds{outcome.progress.rounds, outcome.exchange_seconds})
                        : std::nullopt};
}

void print_result(const TrainOptions& options, const Summary& summary, const TrainOutcome& outcome,
                  std::ostream& out) {
  if (const auto& test = outcome.test) {
    out << fmt::format("test {:<11}{}\n", test->metric.name(), to_text(test->metric))
        << fmt::format("test loss       {:.4f}\n", test->loss) << describe_bad("test", *test);
    if (!test->classes.empty()) {
      const std::vector<std::string> names =
          split_class_names(outcome.progress.class_names, std::ssize(test->classes));
      out << class_table(test->classes, names, true);
    }
  }
  if (const auto& validation = outcome.validation) {
    out << fmt::format("validation      {} {}, loss {:.4f}\n", validation->metric.name(),
                       to_text(validation->metric), validation->loss)
        << describe_bad("validation", *validation);
  }
  if (summary.train_bad_samples > 0) {
    out << fmt::format("replaced        {} bad training sample{} in an epoch\n",
                       summary.train_bad_samples, summary.train_bad_samples == 1 ? "" : "s");
  }
  if (summary.seconds > 0.0) {
    out << fmt::format(
        "training        {:.1f} s, {:.0f} samples/s, {:.2f}% of it waiting for input\n",
        summary.seconds, summary.samples_per_second, 100.0 * summary.input_wait_fraction);
    if (!summary.stage_idle_fractions.empty()) {
      out << fmt::format("stages          idle {:.1f}% of the training, waiting for others\n",
                         fmt::join(in_percent(summary.stage_idle_fractions), "%, "));
    }
    if (summary.replicas > 1) {
      out << fmt::format(
          "communication   {:.2f}% of the training spent on it or waiting for other replicas\n",
          100.0 * summary.communication_exposed_fraction);
    }
  }
  if (summary.gpu) {
    out << fmt::format("GPU             {:.0f}% busy, {:.1f} GiB used, {:.0f} W\n",
                       100.0 * summary.gpu->utilisation,
                       static_cast<double>(summary.gpu->memory_bytes) / double{1 << 30},
                       summary.gpu->watts);
  }
  if (!summary.staleness.empty()) {
    out << "staleness       " << describe_staleness(summary.staleness) << '\n';
  }
  if (summary.repeated_batches > 0) {
    out << "repeated        " << summary.repeated_batches
        << " batches, each in part before its worker died and again by another worker\n";
  }
  out << "steps           " << summary.steps << '\n'
      << "weights hash    " << summary.weights_hash << '\n'
      << "checkpoint      "
      << (outcome.checkpoint ? outcome.checkpoint->string()
                             : std::string("none: --checkpoint-dir DIR keeps one"))
      << '\n';
  if (outcome.best) out << "best            " << outcome.best->string() << '\n';
  if (!options.metrics.empty()) out << "metrics         " << options.metrics.string() << '\n';
  if (!options.tensorboard.empty()) {
    out << "tensorboard     " << options.tensorboard.string() << '\n';
  }
  out << std::flush;
}

int report_stop(const TrainOutcome& outcome, ProgressDisplay& display) {
  const std::string when = "stopped by " + *outcome.stopped_by + " after step " +
                           std::to_string(outcome.progress.at.step);
  if (outcome.checkpoint) {
    display.note(when + "; saved " + outcome.checkpoint->string() +
                 "; --resume goes on from there");
    return kExitStopped;
  }
  if (outcome.saved_by_another) {
    display.note(when + "; another worker has saved a checkpoint; --resume goes on from there");
    return kExitStopped;
  }
  display.note("syncopate: " + when + "; nothing was saved: there is no --checkpoint-dir");
  return kExitFailed;
}

}  // namespace syncopate
