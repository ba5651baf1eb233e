// The flags of train about the strategy, its devices, its tasks and the variables that they share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ps/shard/stale_gradients.h"
#include "strategies/collective/collectives.h"
#include "worker/run/flags/train_flag.h"
#include "worker/run/run_devices.h"

namespace syncopate {
namespace {

constexpr int kMostReplicas = 1024;
constexpr int kMostThreads = 1024;
constexpr int kMostBucketMib = 1 << 20;
constexpr int kMostStaleness = 1'000'000;
constexpr double kLeastTimeout = 0.5;  // the least timeout that a flag may set, in seconds
constexpr double kMostTimeout = 1e6;
constexpr InComparison kWorkers = {
    .use = InComparison::kSetByCompare,
    .advice = "compare starts the workers: give --workers before the --",
    .plan_advice = "plan has rows for each number of --workers, before the --"};

// For flags whose values are parts of the names of variants, in `compare` and in `plan`.
constexpr InComparison of_variants(std::string_view advice) {
  return {.use = InComparison::kSetByCompare, .advice = advice, .plan_advice = advice};
}
constexpr InComparison kVariants =
    of_variants("give it in --strategies, as in parameter-server:ssp:2");

constexpr InComparison kOfQuorum = of_variants(
    "give it in --strategies, as in parameter-server:quorum:2:0.5+displacement:diloco:8");

Names collective_names() {
  Names names = {"auto"};
  for (const CollectiveRow& row : collectives()) names.push_back(row.name);
  return names;
}

FlagText devices_text(const TrainOptions& o) {
  if (o.takes_own_gpus) return "cuda";
  std::vector<std::string> names;
  for (const Device& device : o.strategy.devices) names.push_back(to_string(device));
  return fmt::format("{}", fmt::join(names, ","));
}

FlagText device_kind(const TrainOptions& o) {
  return o.strategy.devices.front().kind == DeviceKind::kCpu ? "cpu" : "cuda";
}

bool has_gpu(const TrainOptions& o, int /*workers*/) {
  const auto is_gpu = [](const Device& device) { return device.kind != DeviceKind::kCpu; };
  return o.takes_own_gpus || std::ranges::any_of(o.strategy.devices, is_gpu);
}

// The sums of `local`, `ring` and servers have the same bits, and these are the ones computed.
bool sums_otherwise(const TrainOptions& o, int /*workers*/) {
  return o.strategy.collective == "mpi" || o.strategy.collective == "nccl";
}

bool shares_statistics(const TrainOptions& o, int workers) {
  return o.strategy.batch_norm == BatchNormStatistics::kSync && workers > 1;
}

ps::Consistency consistency_of(const TrainOptions& o) { return o.strategy.consistency.consistency; }

constexpr TrainFlag::Need kStages = {has_stages, "--strategy pipeline"};
constexpr TrainFlag::Need kShared = {
    [](const TrainOptions& o) { return strategy_of(o).shares_variables(); },
    "--strategy parameter-server or central-storage"};

constexpr TrainFlag::Need kQuorum = {
    [](const TrainOptions& o) { return consistency_of(o) == ps::Consistency::kQuorum; },
    "--consistency quorum"};

FlagRules timeout(std::string default_text) {
  return {.unit = "seconds",
          .default_text = std::move(default_text),
          .least = kLeastTimeout,
          .most = kMostTimeout};
}

// Returns the row of a flag that places a task in its cluster (deploy/cli/cluster_flags.cc).
TrainFlag place(std::string name, const InComparison& in_comparison) {
  return {.name = std::move(name),
          .agreement = TrainFlag::Agreement::kNone,
          .in_comparison = in_comparison};
}

}  // namespace

std::vector<TrainFlag> strategy_flags() {
  return {
      {.name = "--strategy",
       .help = "distribution strategy",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.name; },
       .rules = {.choices = names_of(strategies())},
       .in_comparison = of_variants("name it in --strategies")},
      {.name = "--devices",
       .help = "devices of the replicas: cpu | cuda (all GPUs of this task) | cuda:0,cuda:1 (these "
               "GPUs; the replicas use them in turn)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) { read_devices(text, o); };
       },
       .rules = {.value = "LIST", .default_text = "cpu"},
       .text = devices_text,
       .compared = device_kind,
       .in_comparison =
           {InComparison::kRealOnly,
            "the virtual clock trains all workers on the CPU; leave it out, or compare "
            "with --clock real",
            has_gpu}},
      {.name = "--precision",
       .help = "number type of the activations; parameters stay f32 (bf16 and fp16 require "
               "--devices cuda)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.strategy.precision); },
       .in_comparison = {InComparison::kNeutral}},  // f32; others require --devices cuda
      {.name = "--replicas",
       .help = "number of copies of the network in this process; the copies share the CPUs of the "
               "process",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.replicas; },
       .rules = {.default_text = "1; with mirrored or central-storage on GPUs, one per GPU",
                 .least = 1,
                 .most = kMostReplicas},
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = kWorkers},
      {.name = "--stages",
       .help = "number of stages into which --strategy pipeline cuts the network; all stages have "
               "about equal work. Each stage runs on its own CPUs. To keep all stages busy, "
               "set --accumulate, so that each step has several micro-batches",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.stages; },
       .rules = {.default_text = "2; in a job of several tasks, one stage per task",
                 .least = 1,
                 .most = kMostReplicas},
       .needs = {kStages},
       .in_comparison = {InComparison::kSetByCompare,
                         "the workers of a pipeline are its stages: give --workers before the --"}},
      {.name = "--cut",
       .help = "nodes of the network after which --strategy pipeline cuts it; `syncopate network` "
               "marks the nodes where a cut is possible",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.cut; },
       .rules = {.value = "NODE,...",
                 .default_text = "nodes that give stages of about equal work",
                 .separator = ','},
       .needs = {kStages}},
      {.name = "--share-devices",
       .help = "allow more replicas than CPUs, and several tasks on one GPU",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.shares_devices; },
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--threads",
       .help = "number of compute threads per replica; the results of two runs are bit-identical "
               "only if this number is the same",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.lanes; },
       .rules = {.default_text = "the number of CPUs or the CPU quota, whichever is smaller, "
                                 "divided by the number of replicas",
                 .least = 1,
                 .most = kMostThreads},
       .is_unset_at_zero = true,
       .agreement = TrainFlag::Agreement::kWarning},
      {.name = "--collective",
       .help = "implementation of the all-reduce, which sums the gradients of all replicas",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.collective; },
       .rules = {.choices = collective_names()},
       .needs = {{[](const TrainOptions& o) {
                    return strategy_of(o).takes_collective(o.strategy.collective,
                                                           o.cluster.world_size);
                  },
                  ""}},
       .in_comparison =
           {InComparison::kNeutral,
            "the virtual clock adds as local and ring do; leave it out, or compare with "
            "--clock real",
            sums_otherwise}},
      {.name = "--transport",
       .help = "transport of the ring all-reduce and of parameter servers (shm: shared memory; "
               "auto: shm if the tasks run on one host, else tcp)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.strategy.transport); },
       .needs = {{[](const TrainOptions& o) {
                    return has_links(o) || o.strategy.transport == Transport::kAuto;
                  },
                  ""}},
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--bucket-mb",
       .help = "size of a bucket in MiB; the gradients are sent in buckets",
       .field = [](TrainOptions& o) -> FlagTarget {
         return ScaledTarget{&o.strategy.bucket_bytes, std::int64_t{1} << 20};
       },
       .rules = {.value = "MIB", .least = 1, .most = kMostBucketMib},
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--batch-norm",
       .help = "samples from which batch norm computes its statistics (local: the replica's own "
               "batch; sync: the global batch)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.strategy.batch_norm); },
       .needs = {{[](const TrainOptions& o) {
                    return !has_servers(o) || o.strategy.batch_norm == BatchNormStatistics::kLocal;
                  },
                  ""}},
       .decides_updates = true,
       .in_comparison =
           {InComparison::kRealOnly,
            "workers compute one after the other under the virtual clock; leave it out, or "
            "compare with --clock real",
            shares_statistics}},
      {.name = "--deterministic",
       .help = "make the results of repeated runs on GPUs bit-identical. Synchronous runs on CPUs "
               "always give bit-identical results",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.deterministic; },
       .agreement = TrainFlag::Agreement::kNone,
       .needs = {{[](const TrainOptions& o) { return is_synchronous(o.strategy.consistency); },
                  ""}},
       .in_comparison = {InComparison::kNeutral}},
  };
}

std::vector<TrainFlag> cluster_flags() {
  return {
      place("--rank", kWorkers),
      place("--world-size", kWorkers),
      place("--rendezvous", kWorkers),
      place("--servers", kOfCompareAndPlan),
      place("--nonce", kWorkers),
      place("--role", kWorkers),
      {.name = "--rendezvous-timeout",
       .help = "longest time that this task waits at the start until all tasks have connected",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.rendezvous_timeout; },
       .rules = timeout("300 if the job has servers and trains on GPUs; otherwise 60 under "
                        "`syncopate launch`, and 120 in other jobs"),
       .is_unset_at_zero = true,
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--peer-timeout",
       .help = "longest time from the death of a task until the job ends; up to three times as "
               "long while tasks are starting on other machines",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.peer_timeout; },
       .rules = timeout("15; 5 if all tasks are on one machine"),
       .is_unset_at_zero = true,
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
  };
}

std::vector<TrainFlag> consistency_flags() {
  return {
      {.name = "--consistency",
       .help = "rule by which workers wait for each other (async: workers never wait; ssp: a "
               "worker waits while it is more than --max-staleness steps ahead of the slowest; "
               "quorum: displacements that arrive together make one update with their mean; "
               "sync: each update waits for all workers)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return enum_target(o.strategy.consistency.consistency);
       },
       .rules = {.default_text = "async for parameter-server, sync for central-storage"},
       .needs = {kShared},
       .decides_updates = true,
       .in_comparison = kVariants},
      {.name = "--max-staleness",
       .help = "number of steps that the fastest worker may be ahead of the slowest; only with "
               "--consistency ssp",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.consistency.max_staleness; },
       .rules = {.least = 0, .most = kMostStaleness},
       .needs = {kShared,
                 {[](const TrainOptions& o) { return consistency_of(o) == ps::Consistency::kSsp; },
                  "--consistency ssp"}},
       .decides_updates = true,
       .in_comparison = kVariants},
      {.name = "--quorum",
       .help = "number of workers that an update waits for; only with --consistency quorum",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.consistency.quorum; },
       .rules = {.default_text = "all workers", .least = 1},
       .is_unset_at_zero = true,
       .needs = {kShared, kQuorum},
       .decides_updates = true,
       .in_comparison = kOfQuorum},
      {.name = "--grace",
       .help = "how long an update waits for the other workers when --quorum workers have pushed; "
               "only with --consistency quorum",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.consistency.grace; },
       .rules = {.unit = "seconds", .least = 0.0, .most = ps::kMostGrace, .example = "0.5"},
       .needs = {kShared,
                 kQuorum,
                 {[](const TrainOptions& o) { return o.strategy.consistency.quorum > 0; },
                  "--quorum"}},
       .decides_updates = true,
       .in_comparison = kOfQuorum},
      {.name = "--backup-workers",
       .help = "number of gradients, the slowest ones, that each step drops; only with "
               "--consistency sync",
       .field = [](TrainOptions& o) -> FlagTarget {
         return &o.strategy.consistency.backup_workers;
       },
       .rules = {.least = 0},
       .needs = {kShared,
                 {[](const TrainOptions& o) { return consistency_of(o) == ps::Consistency::kSync; },
                  "--consistency sync"}},
       .decides_updates = true,
       .in_comparison =
           of_variants("give it in --strategies, as in parameter-server:sync+backup:1")},
      {.name = "--staleness-rule",
       .help =
           "rule for stale gradients; only with --consistency async or, up to dc-adaptive, ssp: "
           "none | inverse (the learning rate is divided by the staleness if the staleness is "
           "above 1) | dc (delay compensation) | dc-adaptive (delay compensation of adaptive "
           "strength) | ringmaster:R (a gradient with a staleness of R or more is dropped) | "
           "rennala:B (an update is the mean of B gradients of the same parameters; others are "
           "dropped) | ordered-momentum (the momentum of a late gradient counts as if it had "
           "come in its order). The samples of a dropped gradient are trained again",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           ps::set_staleness_rule(o.strategy.consistency, text, "--staleness-rule");
         };
       },
       .rules = {.value = "RULE", .default_text = "none"},
       .text =
           [](const TrainOptions& o) {
             return FlagText(ps::staleness_rule_text(o.strategy.consistency));
           },
       .needs = {kShared},
       .decides_updates = true,
       .in_comparison =
           of_variants("give it in --strategies, as in parameter-server:async+inverse")},
      {.name = "--compress",
       .help = "compression, with error feedback, of the gradients that workers push: none | bf16 "
               "(also rounds the parameters that workers receive) | topk:FRACTION (sends only this "
               "fraction of the elements, the largest ones)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.strategy.parameter_server.compression = ps::parse_compression(text, "--compress");
         };
       },
       .rules = {.value = "CODEC", .default_text = "none"},
       .text =
           [](const TrainOptions& o) {
             return FlagText(to_text(o.strategy.parameter_server.compression));
           },
       .needs = {kServerStrategy},
       .decides_updates = true},
      {.name = "--partition",
       .help = "rule that splits variables into parts for the servers, as TensorFlow's "
               "partitioners do: fixed:N | min-size:BYTES | max-size:BYTES",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           if (text.empty()) return;
           o.strategy.parameter_server.partition = ps::parse_partition(text, "--partition");
         };
       },
       .rules = {.value = "RULE", .default_text = "only large variables are split"},
       .text =
           [](const TrainOptions& o) {
             return FlagText(to_text(o.strategy.parameter_server.partition));
           },
       .needs = {kServerStrategy}},
  };
}

}  // namespace syncopate
