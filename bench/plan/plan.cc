#include "bench/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>

#include "bench/compare/run_plan.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/virtual_run.h"
#include "bench/harness/machine_load.h"
#include "bench/harness/report.h"
#include "bench/plan/plan_report.h"
#include "bench/plan/plan_rounds.h"
#include "bench/plan/plan_verdict.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "models/optim/outer_rule.h"
#include "models/zoo/zoo.h"
#include "ps/shard/placement.h"
#include "strategies/strategy.h"
#include "strategies/strategy_options.h"
#include "worker/run/run_data.h"
#include "worker/run/run_memory.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

// Records the virtual time of the first evaluation at or above the target.
class TargetWatch final : public MetricsWriter {
 public:
  explicit TargetWatch(double target) : target_(target) {}
  void write(const BeginMetrics& /*metrics*/) override {}
  void write(const StepMetrics& /*metrics*/) override {}
  void write(const WorkerMetrics& /*metrics*/) override {}
  void write(const EvalMetrics& metrics) override {
    if (!result_.seconds && metrics.result.metric.value >= target_) {
      result_.seconds = metrics.trained_seconds;
    }
  }
  void write(const Summary& summary) override { result_.accuracy = summary.test.metric.value; }
  const TargetTime& result() const noexcept { return result_; }

 private:
  const double target_;
  TargetTime result_;
};

TargetTime time_to_target(const PlanOptions& options, const Variant& variant,
                          const FaultInjection& faults, const DataSplits& data) {
  CompareOptions compared;
  compared.variants = {variant};
  compared.clock = Clock::kVirtual;
  compared.epochs = options.epochs;
  compared.batch_size_per_replica = options.batch_size_per_replica;
  compared.model = options.model;
  compared.data = options.data;
  compared.target_accuracy = options.target_accuracy;
  compared.cluster.faults = faults;
  compared.seeds = 1;
  TargetWatch watch(options.target_accuracy);
  try {
    compared.shared = parse_shared_train_flags(options.train_flags, SharedBy::kPlan);
    RunSpec run = plan_runs(compared, data.train->size()).front();
    run.seed = options.seed;
    run.train.strategy.seed = run.train.loop.service_time.seed = options.seed;
    // The run uses the links of the simulation, so a single process trains as if its replicas had
    // links.
    run.faults.link = faults.link;
    run_virtually(run, data, watch, {}, [](double /*fraction*/) {});
  } catch (const std::exception& error) {
    return {.seconds = std::nullopt, .failure = error.what()};
  }
  return watch.result();
}

constexpr std::string_view kAdded = "compute+";

// Counts the parameters of the model without alignment padding.
std::int64_t parameters_of(const ArenaLayout& layout) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) elements += layout.size(i);
  return elements;
}

ps::Placement placement_of(const Graph& graph, int servers) {
  return ps::place_variables(graph.parameter_layout(), {.servers = servers});
}

// Throws UsageError for a cut that no variant has.
void require_cut_variant(const PlanOptions& options, const std::vector<Variant>& variants) {
  if (options.cut.empty()) return;
  const std::string cut = fmt::format("--cut {}", fmt::join(options.cut, ","));
  const int stages = static_cast<int>(options.cut.size()) + 1;
  const auto has_cut = [&](const Variant& variant) {
    return variant.has_stages() && variant.workers == stages;
  };
  if (std::ranges::any_of(variants, has_cut)) return;
  if (std::ranges::none_of(variants, &Variant::has_stages)) {
    throw UsageError(cut + ": no pipeline is planned; leave it out, or give --strategies pipeline");
  }
  throw UsageError(fmt::format("{}: gives {} stages, but --workers {}; give --workers {}", cut,
                               stages, fmt::join(options.workers, ","), stages));
}

// Throws UsageError for a flag that the predicted times of a row would ignore.
void require_predicted(const SharedTrainFlags& flags, const Variant& variant) {
  for (const char* const flag : {"--compress", "--partition", "--inner-state"}) {
    if (!flags.has(flag)) continue;
    throw UsageError(fmt::format(
        "{} {}: plan predicts messages without it; leave it out, or run syncopate-bench compare",
        flag, text_of(flags.options, flag)));
  }
  if (variant.has_flag("--head")) {
    throw UsageError(fmt::format(
        "{}: plan predicts all rows for one network; give --head after --, for all of them",
        variant.label));
  }
}

constexpr std::string_view kFirstRound = "--local-from";  // predicted without training, too

// Throws UsageError for flags in braces that only training would honour.
void require_training(const PlanOptions& options, const Variant& variant) {
  if (options.time_to_target) return;
  for (const std::string& flag : variant.flags) {
    if (flag.starts_with(kFirstRound)) continue;
    throw UsageError(
        fmt::format("--strategies {}: flags of train in braces require --time-to-target, except "
                    "{}",
                    variant.label, kFirstRound.substr(2)));
  }
}

// Returns the options of a task of a variant. Throws UsageError for a flag in braces that the task
// would ignore, and for options of local updates that contradict each other.
TrainOptions options_of_task(const PlanOptions& options, const SharedTrainFlags& flags,
                             const Variant& variant) {
  TrainOptions task = flags.options;
  set_strategy(variant, task.strategy);
  task.strategy.batch_size_per_replica = options.batch_size_per_replica;
  task.strategy.lanes = std::max(1, task.strategy.lanes);
  (variant.has_tasks() ? task.cluster.world_size : task.strategy.replicas) = variant.workers;
  if (!options.time_to_target) {
    const std::string ignored = ignored_flag(flags, task, variant.label, true);
    if (!ignored.empty()) throw UsageError(ignored);
  }
  try {
    if (variant.has_outer_step()) check_local_updates(task.strategy);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", variant.label, error.what()));
  }
  return task;
}

// Returns the fraction of the steps of a run that sum gradients before the first round. Throws
// UsageError if a run has no round.
double summed_share_of(const PlanOptions& options, const Variant& variant,
                       const LocalUpdateOptions& local) {
  if (!outer_rule_row(local.outer).begins_with_sums) return 0.0;
  const double share = local.local_from.value() / static_cast<double>(options.epochs);
  if (share < 1.0) return share;
  throw UsageError(
      fmt::format("{}: a run of --epochs {} ends before its first round; give more --epochs, or an "
                  "earlier local-from",
                  variant.label, options.epochs));
}

// Returns the variants of each word of --strategies in turn, one for each number of workers. Throws
// UsageError for a wrong word.
std::vector<Variant> variants_of(const PlanOptions& options, const SharedTrainFlags& shared) {
  std::vector<Variant> variants;
  for (const std::string& word : options.strategies) {
    const std::size_t before = variants.size();
    for (const int workers : options.workers) {
      Variant variant = parse_variant(word, workers, options.servers, SharedBy::kPlan);
      require_training(options, variant);
      // one-device always has one worker.
      const std::span of_word = std::span(variants).subspan(before);
      if (std::ranges::count(of_word, variant.workers, &Variant::workers) > 0) continue;
      if (variant.has_stages() && !options.cut.empty() && !variant.has_flag("--cut")) {
        variant.flags.push_back(fmt::format("--cut={}", fmt::join(options.cut, ",")));
      }
      const SharedTrainFlags flags = add_flags(shared, variant.flags, variant.label);
      require_predicted(flags, variant);
      const TrainOptions task = options_of_task(options, flags, variant);
      (void)summed_share_of(options, variant, task.strategy.local);
      if (options.time_to_target) require_virtual(shared, variant);
      variants.push_back(std::move(variant));
    }
  }
  require_cut_variant(options, variants);
  return variants;
}

class Planner {
 public:
  explicit Planner(const PlanOptions& options)
      : options_(options),
        shared_(parse_shared_train_flags(options.train_flags, SharedBy::kPlan)),
        variants_(variants_of(options, shared_)),
        data_(open_dataset(options.data, data_options(shared_, options.cache_dir))),
        graph_(network_for_data(options.model, options.data, data_, shared_.options.network)),
        placement_(placement_of(graph_, options.servers)),
        buckets_(plan_buckets_of(graph_, options.servers)),
        slots_(static_cast<int>(
            make_optimizer(shared_.options.strategy.optimizer)->slot_names().size())) {
    require_classes("plan", options.data, data_);
    check_cuts();
    note_train_flags();
    plan_.parameters = parameters_of(graph_.parameter_layout());
    plan_.server_bytes = buckets_.served.bytes_by_server();
  }

  Plan run() {
    ForeignLoadMeter foreign({});
    plan_.calibration = calibrate_step(graph_, *data_.train, options_.batch_size_per_replica,
                                       options_.calibrate_steps);
    plan_.server = calibrate_server(graph_, placement_);
    check_prediction();
    plan_.foreign_share = foreign.take();
    faults_.slow = options_.slow;
    faults_.link = options_.link;
    set_service_time(options_.service_time, plan_.calibration.step_seconds, faults_);
    plan_.mean_step_seconds =
        faults_.compute_seconds + faults_.service_time.mean_milliseconds / 1e3;
    if (options_.link.bytes_per_second > 0.0) {
      plan_.most_pushes_per_second =
          options_.link.bytes_per_second /
          static_cast<double>(*std::ranges::max_element(plan_.server_bytes));
    }
    plan_.most_updates_per_second = 1.0 / plan_.server.update_seconds;
    plan_.one_worker_samples_per_second = samples_per_second(one_worker());
    for (const Variant& variant : variants_) add_row_or_reason(variant);
    return std::move(plan_);
  }

 private:
  double samples_per_second(const TimingResult& timing) const {
    return timing.gradients_per_second() * static_cast<double>(options_.batch_size_per_replica);
  }

  // Returns the nodes behind which a pipeline is cut: the nodes of --cut, or of train's flag.
  std::vector<std::string> cut_of(const Variant& variant) const {
    return add_flags(shared_, variant.flags, variant.label).options.strategy.cut;
  }

  // Throws UsageError for a node behind which the network cannot be cut. A network with too few
  // places, or a cut into another number of stages, only leaves a row out.
  void check_cuts() const {
    for (const Variant& variant : variants_) {
      if (!variant.has_stages()) continue;
      const std::vector<std::string> cut = cut_of(variant);
      if (!cut.empty()) (void)cut_behind(graph_, cut);
    }
  }

  // Notes what the rows load of --init-from, and which flags change nothing.
  void note_train_flags() {
    std::vector<TrainOptions> runs;
    for (const Variant& variant : variants_) {
      runs.push_back(add_flags(shared_, variant.flags, variant.label).options);
      runs.back().model = options_.model;
      runs.back().data = options_.data;
    }
    plan_.notes = describe_initial_weights(runs, data_);
    if (std::ranges::any_of(variants_, &Variant::has_outer_step) && !options_.time_to_target) {
      plan_.notes.emplace_back(
          "workers with local updates need more samples to a target accuracy the longer their "
          "rounds are; --time-to-target trains them");
    }
    const std::string neutral = neutral_flags_note(shared_, variants_);
    if (!neutral.empty()) plan_.notes.push_back(neutral);
  }

  // Predicts what two replicas in one process of this machine do, and lets them do it.
  void check_prediction() {
    FaultInjection here;
    here.compute_seconds = plan_.calibration.step_seconds;
    here.link = kInsideMachine;
    TimingOptions timing =
        timing_of(parse_variant(kMirrored, kCheckedWorkers, 0), buckets_, here, options_.seed);
    timing.gradients = 1;  // Every step is the same.
    const auto measured =
        measure_two_replicas(graph_, *data_.train, options_.batch_size_per_replica);
    if (!measured) return;
    plan_.check = {.predicted = samples_per_second(simulate_timing(timing)), .measured = *measured};
  }

  // Simulates a job of one worker without slowdown, which is the reference for all speed-ups.
  TimingResult one_worker() const {
    FaultInjection alone = faults_;
    alone.slow.clear();
    TimingOptions timing =
        timing_of(parse_variant(kOneDevice, 1, 0), buckets_, alone, options_.seed);
    timing.gradients = options_.gradients;
    return simulate_timing(timing);
  }

  // Adds the row of a variant, or the reason why the plan has none.
  void add_row_or_reason(const Variant& variant) {
    if (variant.backup_workers >= variant.workers) {
      plan_.left_out.push_back(fmt::format("{} with {}: at least one worker must be waited for",
                                           variant.label, variant.workers));
      return;
    }
    try {
      add_row(variant);
    } catch (const UsageError& error) {
      if (!variant.has_stages()) throw;
      plan_.left_out.emplace_back(error.what());  // the network has too few places to cut
    }
  }

  void add_row(const Variant& variant) {
    TimingOptions timing = timing_of(variant, buckets_, faults_, options_.seed);
    timing.gradients = options_.gradients;
    timing.faults.server_bytes_per_second = plan_.server.bytes_per_second();
    std::vector<Stage> stages;
    if (variant.has_stages()) {
      stages = choose_stages(graph_, variant.workers, cut_of(variant),
                             fmt::format("{} with {}", variant.label, variant.workers));
      timing.pipeline = load_of(stages, variant.micro_batches, options_.batch_size_per_replica);
    }
    PlanRow row{.variant = variant, .timing = simulate_timing(timing), .target = std::nullopt};
    if (variant.has_outer_step()) plan_rounds_of(timing, row);
    row.samples_per_second = samples_per_second(row.timing);
    if (timing.pipeline) {
      row.pipeline = plan_stages(stages, *timing.pipeline, options_.batch_size_per_replica, slots_,
                                 plan_.mean_step_seconds, 1.0 / row.timing.updates_per_second);
    }
    row.speed_up = row.samples_per_second / plan_.one_worker_samples_per_second;
    row.efficiency = row.speed_up / variant.workers;
    if (options_.time_to_target && variant.workers <= kMostTrainedWorkers) {
      row.target = time_to_target(options_, variant, faults_, data_);
    }
    plan_.rows.push_back(std::move(row));
  }

  // Plans the rounds of a row after the simulation of `timing`. A row with sums of gradients before
  // the first round gets the timing of a whole run.
  void plan_rounds_of(TimingOptions timing, PlanRow& row) {
    const Variant& variant = row.variant;
    const TrainOptions task =
        options_of_task(options_, add_flags(shared_, variant.flags, variant.label), variant);
    const double share = summed_share_of(options_, variant, task.strategy.local);
    row.rounds = plan_rounds(timing, row.timing, share, least_memory(task, graph_));
    if (share == 0.0) return;
    timing.buckets = buckets_.reduced;
    const std::int64_t steps = std::exchange(timing.steps_per_exchange, 1);
    row.timing = timing_of_both(simulate_timing(timing), row.timing, share, steps);
  }

  const PlanOptions& options_;
  const SharedTrainFlags shared_;        // the flags of train for all rows
  const std::vector<Variant> variants_;  // of each word of --strategies in turn
  const DataSplits data_;
  const Graph graph_;
  const ps::Placement placement_;
  const PlanBuckets buckets_;
  const int slots_;  // of the optimizer, for each parameter
  FaultInjection faults_;
  Plan plan_;
};

}  // namespace

std::int64_t Plan::model_bytes() const noexcept {
  return std::accumulate(server_bytes.begin(), server_bytes.end(), std::int64_t{0});
}

PlanBuckets plan_buckets_of(const Graph& graph, int servers) {
  constexpr std::int64_t kMostBuckets = 8;  // per server
  return {.served = joined(served_buckets(graph, placement_of(graph, servers)), kMostBuckets),
          .reduced = joined(reduced_buckets(graph, StrategyOptions{}.bucket_bytes), kMostBuckets)};
}

void set_service_time(const std::string& text, double step_seconds, FaultInjection& faults) {
  faults.compute_seconds = 0.0;
  faults.service_time = {};
  std::string spread = text;
  if (spread.starts_with(kAdded)) {
    faults.compute_seconds = step_seconds;
    spread.erase(0, kAdded.size());
  } else if (spread.empty() || spread == "constant") {
    faults.compute_seconds = step_seconds;
    return;
  } else if (spread == "exponential" || spread == "lognormal") {
    faults.service_time = parse_service_time(spread + ":1", "--service-time");
    faults.service_time.mean_milliseconds = 1e3 * step_seconds;
    return;
  }
  faults.service_time = parse_service_time(spread, "--service-time");
}

TimingOptions timing_of(const Variant& variant, const PlanBuckets& buckets,
                        const FaultInjection& faults, std::uint64_t seed) {
  const ps::ConsistencyOptions consistency = variant.consistency;
  // With one replica, central storage keeps its variables on the replica's device.
  const bool is_central = variant.row().shares_variables() && variant.servers == 0 &&
                          (!is_synchronous(consistency) || variant.workers > 1);
  TimingOptions timing{
      .strategy = variant.strategy,
      .workers = variant.workers,
      .consistency = consistency,
      .buckets = variant.servers > 0 || is_central ? buckets.served : buckets.reduced,
      .faults = faults,
      .seed = seed};
  if (variant.has_outer_step()) {
    timing.buckets.profile.complete_at_end();
    timing.steps_per_exchange = variant.sync_every;
  }
  if (is_central) std::ranges::fill(timing.buckets.owner, 0);  // one shard in host memory
  return timing;
}

void run_plan(const PlanOptions& options, std::ostream& out) {
  require_writable(options.json);
  const Plan plan = Planner(options).run();
  print_plan(out, options, plan);
  out << "\n" << verdict_of(options, plan) << "\n";
  if (!options.json.empty()) write_report(options.json, json_of(options, plan));
  const auto is_trained = [](const PlanRow& row) { return row.target.has_value(); };
  const auto has_failed = [&](const PlanRow& row) {
    return !is_trained(row) || !row.target->failure.empty();
  };
  const auto trained = std::ranges::find_if(plan.rows, is_trained);
  if (trained != plan.rows.end() && std::ranges::all_of(plan.rows, has_failed)) {
    throw std::runtime_error("no row was trained: " + trained->target->failure);
  }
}

}  // namespace syncopate::bench
