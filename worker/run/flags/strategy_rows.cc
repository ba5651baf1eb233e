// The flags of train about the strategy, its devices, its tasks and the variables that they share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/collective/collectives.h"
#include "worker/run/device_list.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate {
namespace {

constexpr int kMostReplicas = 1024;
constexpr int kMostThreads = 1024;
constexpr int kMostBucketMib = 1 << 20;
constexpr int kMostStaleness = 1'000'000;
constexpr double kLeastTimeout = 0.5;  // the least timeout that a flag may set, in seconds
constexpr double kMostTimeout = 1e6;
constexpr std::string_view kVariants = "give it in --strategies, as in parameter-server:ssp:2";
constexpr std::string_view kWorkers = "compare starts the workers: give --workers before the --";

Names collective_names() {
  Names names = {"auto"};
  for (const CollectiveRow& row : collectives()) names.push_back(row.name);
  return names;
}

Names strategy_names() {
  Names names;
  for (const StrategyRow& row : strategies()) names.push_back(row.name);
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

FlagText compression_text(const TrainOptions& o) {
  const ps::CompressionOptions& compression = o.strategy.parameter_server.compression;
  if (compression.codec == ps::Codec::kTopK) return fmt::format("topk:{}", compression.fraction);
  return compression.codec == ps::Codec::kBf16 ? "bf16" : "none";
}

FlagText partition_text(const TrainOptions& o) {
  static constexpr std::array kNames = {"auto", "fixed", "min-size", "max-size"};
  const ps::PartitionRule& rule = o.strategy.parameter_server.partition;
  const char* name = kNames[static_cast<std::size_t>(rule.kind)];
  if (rule.kind == ps::PartitionRule::Kind::kAuto) return name;
  return fmt::format("{}:{}", name, rule.value);
}

FlagRules timeout(std::string default_text) {
  return {.unit = "seconds",
          .default_text = std::move(default_text),
          .least = kLeastTimeout,
          .most = kMostTimeout};
}

// Returns the row of a flag that places a task in its cluster (deploy/cli/cluster_flags.cc).
TrainFlag place(std::string name, std::string_view advice) {
  return {.name = std::move(name),
          .agreement = TrainFlag::Agreement::kNone,
          .in_comparison = {InComparison::kSetByCompare, advice}};
}

}  // namespace

std::vector<TrainFlag> strategy_flags() {
  return {
      {.name = "--strategy",
       .help = "distribution strategy",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.name; },
       .rules = {.choices = strategy_names()},
       .in_comparison = {InComparison::kSetByCompare, "name it in --strategies"}},
      {.name = "--devices",
       .help = "devices of the replicas: cpu | cuda (the GPUs of this task) | cuda:0,cuda:1 "
               "(divided among its replicas)",
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
       .help = "type of activations (bf16 and fp16 require cuda; parameters stay f32)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.strategy.precision); },
       .in_comparison = {InComparison::kNeutral}},  // f32; others require --devices cuda
      {.name = "--replicas",
       .help = "copies of the network in this process; they share its CPUs",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.replicas; },
       .rules = {.default_text = "1; mirrored and central-storage on GPUs: one for each",
                 .least = 1,
                 .most = kMostReplicas},
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kSetByCompare, kWorkers}},
      {.name = "--stages",
       .help =
           "number of parts that --strategy pipeline cuts the network into, of about equal work; "
           "each has its own CPUs. --accumulate N gives them N micro-batches to keep them busy",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.stages; },
       .rules = {.default_text = "2; of a job of several tasks: one for each",
                 .least = 1,
                 .most = kMostReplicas},
       .needs = {kStages},
       .in_comparison = {InComparison::kSetByCompare,
                         "the workers of a pipeline are its stages: give --workers before the --"}},
      {.name = "--cut",
       .help = "nodes that --strategy pipeline cuts the network behind; syncopate network marks "
               "possible nodes",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.cut; },
       .rules = {.value = "NODE,...", .default_text = "stages of equal work", .separator = ','},
       .needs = {kStages}},
      {.name = "--share-devices",
       .help = "allow more replicas than CPUs, and several tasks on one GPU",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.shares_devices; },
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--threads",
       .help = "compute threads per replica; two runs are bit-equal only with equal numbers",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.lanes; },
       .rules = {.default_text = "the CPUs, at most the CPU quota, divided among the replicas",
                 .least = 1,
                 .most = kMostThreads},
       .is_unset_at_zero = true,
       .agreement = TrainFlag::Agreement::kWarning},
      {.name = "--collective",
       .help = "implementation of the all-reduce",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.collective; },
       .rules = {.choices = collective_names()},
       .needs = {{[](const TrainOptions& o) {
                    return strategy_of(o).takes_collective(o.strategy.collective,
                                                           o.cluster.world_size);
                  },
                  ""}},
       .in_comparison =
           {InComparison::kRealOnly,
            "the virtual clock adds as local and ring do; leave it out, or compare with "
            "--clock real",
            sums_otherwise}},
      {.name = "--transport",
       .help = "transport of the ring and of servers (auto: shared memory on one host, else "
               "tcp)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.strategy.transport); },
       .needs = {{[](const TrainOptions& o) {
                    return has_links(o) || o.strategy.transport == Transport::kAuto;
                  },
                  ""}},
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--bucket-mb",
       .help = "size of a bucket of gradients, in MiB",
       .field = [](TrainOptions& o) -> FlagTarget {
         return ScaledTarget{&o.strategy.bucket_bytes, std::int64_t{1} << 20};
       },
       .rules = {.value = "MIB", .least = 1, .most = kMostBucketMib},
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--batch-norm",
       .help = "samples in the batch statistics (local: one replica's; sync: the global batch)",
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
       .help = "make runs on GPUs bit-equal; synchronous runs on the CPU always are",
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
      place("--servers", "give it before the --"),
      place("--nonce", kWorkers),
      place("--role", kWorkers),
      {.name = "--rendezvous-timeout",
       .help = "time to wait for the other tasks at the start",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.rendezvous_timeout; },
       .rules = timeout("120, under launch 60; with servers on GPUs 300"),
       .is_unset_at_zero = true,
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--peer-timeout",
       .help = "time from the death of a task to the end of the job; up to three times "
               "longer while tasks start on other machines",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.peer_timeout; },
       .rules = timeout("15, on one machine 5"),
       .is_unset_at_zero = true,
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
  };
}

std::vector<TrainFlag> consistency_flags() {
  return {
      {.name = "--consistency",
       .help = "consistency rule of shared variables",
       .field = [](TrainOptions& o) -> FlagTarget {
         return enum_target(o.strategy.consistency.consistency);
       },
       .rules = {.default_text = "async for parameter-server, sync for central-storage"},
       .needs = {kShared},
       .decides_updates = true,
       .in_comparison = {InComparison::kSetByCompare, kVariants}},
      {.name = "--max-staleness",
       .help = "steps that the fastest worker may be ahead of the slowest, with --consistency ssp",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.consistency.max_staleness; },
       .rules = {.least = 0, .most = kMostStaleness},
       .needs = {kShared,
                 {[](const TrainOptions& o) { return consistency_of(o) == ps::Consistency::kSsp; },
                  "--consistency ssp"}},
       .decides_updates = true,
       .in_comparison = {InComparison::kSetByCompare, kVariants}},
      {.name = "--backup-workers",
       .help = "number of slowest gradients that each step drops, with --consistency sync",
       .field = [](TrainOptions& o) -> FlagTarget {
         return &o.strategy.consistency.backup_workers;
       },
       .rules = {.least = 0},
       .needs = {kShared,
                 {[](const TrainOptions& o) { return consistency_of(o) == ps::Consistency::kSync; },
                  "--consistency sync"}},
       .decides_updates = true,
       .in_comparison = {InComparison::kSetByCompare,
                         "give it in --strategies, as in parameter-server:sync+backup:1"}},
      {.name = "--staleness-rule",
       .help = "treatment of stale gradients, with --consistency async and ssp (inverse: rate / "
               "staleness; dc: delay compensation)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return enum_target(o.strategy.consistency.staleness_rule);
       },
       .needs = {kShared},
       .decides_updates = true,
       .in_comparison = {InComparison::kSetByCompare,
                         "give it in --strategies, as in parameter-server:async+inverse"}},
      {.name = "--compress",
       .help = "compression of pushes, with error feedback: none | bf16 (rounds the values that "
               "workers compute with, too) | topk:FRACTION",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.strategy.parameter_server.compression = ps::parse_compression(text, "--compress");
         };
       },
       .rules = {.value = "CODEC", .default_text = "none"},
       .text = compression_text,
       .needs = {kServerStrategy},
       .decides_updates = true},
      {.name = "--partition",
       .help = "partition of variables over servers: fixed:N | min-size:BYTES | max-size:BYTES",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           if (text.empty()) return;
           o.strategy.parameter_server.partition = ps::parse_partition(text, "--partition");
         };
       },
       .rules = {.value = "RULE", .default_text = "large variables are split"},
       .text = partition_text,
       .needs = {kServerStrategy}},
  };
}

}  // namespace syncopate
