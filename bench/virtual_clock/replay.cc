#include "bench/virtual_clock/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/virtual_clock/outgoing_gradient.h"
#include "bench/virtual_clock/virtual_device.h"
#include "models/base/errors.h"
#include "models/optim/outer_rule.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/server/order_record.h"
#include "ps/server/served_variables.h"
#include "ps/shard/consistency.h"
#include "ps/shard/placement.h"
#include "ps/wire/message.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/input/batches/batch_reader.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

using EntryKind = ps::OrderEntry::Kind;

struct InnerStep {
  ps::SampleRange batch;
  float learning_rate = 0.0F;
};

struct RecordedPush {
  ps::SampleRange batch;
  std::vector<InnerStep> inner;              // of a displacement, in their order; else empty
  int lanes = 0;                             // compute threads; 0: the record lacks the push's end
  std::vector<std::uint64_t> versions_read;  // read values' version by bucket; 0: unknown
};

// What all shards of a job recorded: the order in which they applied pushes and sent values.
struct RecordedJob {
  struct PushName {
    int worker = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;
    auto operator<=>(const PushName&) const = default;
  };
  struct RecordedShard {
    std::filesystem::path file;
    ps::OrderRecord record;
    std::vector<int> job_bucket;  // the job's bucket for each bucket of the shard
  };

  ps::wire::DeclarationT declaration;
  ps::Placement placement;
  std::vector<RecordedShard> shards;  // one record per shard, by shard number
  std::map<PushName, RecordedPush> pushes;

  // Returns the value of a flag on which all workers of the job agreed, such as "--seed". Throws
  // UsageError if it was not recorded.
  const std::string& agreed(const std::string& flag) const;
};

const std::string& RecordedJob::agreed(const std::string& flag) const {
  const auto at = std::ranges::find_if(
      declaration.agreements, [&](const auto& agreement) { return agreement->name == flag; });
  if (at == declaration.agreements.end()) {
    throw UsageError(
        fmt::format("{}: does not have the job's {}; was it recorded by another version?",
                    shards.front().file.string(), flag));
  }
  return (*at)->value;
}

ps::wire::DeclarationT declaration_of(const std::filesystem::path& file,
                                      const ps::OrderHeader& header) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(header.declaration.data());
  flatbuffers::Verifier verifier(bytes, header.declaration.size());
  if (!verifier.VerifyBuffer<ps::wire::Declaration>(nullptr)) {
    throw FileError(
        fmt::format("{}: its job cannot be read; it is damaged, or of another version of syncopate",
                    file.string()));
  }
  ps::wire::DeclarationT declaration;
  flatbuffers::GetRoot<ps::wire::Declaration>(bytes)->UnPackTo(&declaration);
  return declaration;
}

void check_headers(const std::vector<RecordedJob::RecordedShard>& shards) {
  const ps::OrderHeader& first = shards.front().record.header;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const ps::OrderHeader& header = shards[s].record.header;
    const std::string file = shards[s].file.string();
    if (header.fingerprint != first.fingerprint) {
      throw UsageError(fmt::format("{} and {} are of different jobs; give the records of one job",
                                   file, shards.front().file.string()));
    }
    if (header.incarnation != 1) {
      throw UsageError(
          fmt::format("{}: the server was restarted during the job; only a job without restarted "
                      "servers can be "
                      "replayed",
                      file));
    }
    if (header.shard != static_cast<int>(s) || std::cmp_not_equal(header.servers, shards.size())) {
      throw UsageError(fmt::format(
          "expected one record of each of the job's {} servers, found {}; give FILE.shard0 to "
          "FILE.shard{}",
          header.servers, shards.size(), header.servers - 1));
    }
  }
}

void check_kind(const ps::wire::DeclarationT& declaration) {
  const ps::Consistency consistency = ps::consistency_of(declaration);
  if (consistency == ps::Consistency::kAsync || consistency == ps::Consistency::kSsp) return;
  throw UsageError(fmt::format(
      "the record is of a job under --consistency {}; only async and ssp can be replayed",
      name(consistency)));
}

void take_entries(RecordedJob& job, const RecordedJob::RecordedShard& shard) {
  std::map<BucketId, bool> was_pushed_to;
  for (const ps::OrderEntry& entry : shard.record.entries) {
    if (entry.kind == EntryKind::kWritten &&
        (entry.version_after != 1 || was_pushed_to[entry.bucket])) {
      throw UsageError(
          fmt::format("{}: the job began from a checkpoint; only a job that began with the seed's "
                      "initial values "
                      "can be replayed",
                      shard.file.string()));
    }
    if (entry.kind == EntryKind::kWritten || entry.kind == EntryKind::kAnswered) continue;
    was_pushed_to[entry.bucket] = true;
    RecordedPush& push = job.pushes[{entry.worker, entry.incarnation, entry.sequence}];
    if (entry.kind == EntryKind::kInnerStep) {
      push.inner.push_back({entry.batch, entry.learning_rate});
      continue;
    }
    push.versions_read.resize(job.placement.buckets.size());
    const int bucket = shard.job_bucket[static_cast<std::size_t>(entry.bucket)];
    push.versions_read[static_cast<std::size_t>(bucket)] = entry.version_read;
    if (entry.lanes == 0) continue;
    push.lanes = entry.lanes;
    push.batch = entry.batch;
  }
}

// Reads the order records of all shards of one job. Throws UsageError and FileError.
RecordedJob read_recorded_job(std::span<const std::filesystem::path> files) {
  if (files.empty()) throw UsageError("no order record given; give FILE.shard0 and the others");
  RecordedJob job;
  for (const std::filesystem::path& file : files) {
    job.shards.push_back({file, ps::read_order_record(file.string()), {}});
  }
  std::ranges::sort(job.shards, {}, [](const auto& shard) { return shard.record.header.shard; });
  check_headers(job.shards);
  job.declaration = declaration_of(job.shards.front().file, job.shards.front().record.header);
  check_kind(job.declaration);
  for (std::size_t b = 0; b < job.declaration.buckets.size(); ++b) {
    const ps::wire::BucketPlace& place = job.declaration.buckets[b];
    if (place.owner() < 0 || std::cmp_greater_equal(place.owner(), job.shards.size())) {
      throw FileError(fmt::format("{}: a bucket belongs to server {}, which the job did not have",
                                  job.shards.front().file.string(), place.owner()));
    }
    job.placement.buckets.push_back({place.begin(), place.end()});
    job.placement.owner.push_back(place.owner());
    job.shards[static_cast<std::size_t>(place.owner())].job_bucket.push_back(static_cast<int>(b));
  }
  for (const RecordedJob::RecordedShard& shard : job.shards) {
    if (shard.job_bucket.size() != shard.record.header.buckets.size()) {
      throw FileError(
          fmt::format("{}: its buckets are not those that the job declared", shard.file.string()));
    }
    take_entries(job, shard);
  }
  return job;
}

// Returns a job's declaration with the staleness rule of the recorded job, but with servers that
// apply pushes in the order of arrival.
ps::wire::DeclarationT in_order_of_arrival(ps::wire::DeclarationT declaration) {
  declaration.consistency = static_cast<std::uint8_t>(ps::Consistency::kAsync);
  return declaration;
}

InputOptions input_options_of(const RecordedJob& job, std::uint64_t seed) {
  return {.batch_size = job.declaration.batch_size,
          .seed = seed,
          .augment = value_named<Augment>(job.agreed("--augment")).value()};
}

// Returns the value of a flag; empty where the job had none.
std::string given(const RecordedJob& job, const std::string& flag) {
  const std::string& value = job.agreed(flag);
  return value == "absent" ? "" : value;
}

// Computes a recorded job again, in the order that the records of its shards give.
class Replay {
 public:
  Replay(const RecordedJob& job, const DataSplits& data)
      : job_(job),
        data_(data),
        seed_(std::stoull(job.agreed("--seed"))),
        compression_(ps::parse_compression(job.agreed("--compress"), "--compress")),
        graph_(network_for_data(job.agreed("--model"), data.name, data,
                                {given(job, "--head"), given(job, "--normalize")},
                                std::stof(job.agreed("--label-smoothing")))),
        reader_(*data.train, input_options_of(job, seed_), {}),
        slot_(reader_.make_slot()),
        next_(job.shards.size()) {
    const Tensor first = device_of(1).values();
    for (std::size_t s = 0; s < job.shards.size(); ++s) {
      served_.push_back(
          ps::make_served_variables(in_order_of_arrival(job.declaration), static_cast<int>(s)));
      ps::Shard& shard = *served_.back()->shard;
      for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
        const Bucket& range = shard.buckets()[b];
        if (range.end > first.num_elements()) {
          throw UsageError(fmt::format("{}: the variables are not those of {} on this data",
                                       job.shards[s].file.string(), graph_.name));
        }
        const auto window = shard.element_range(static_cast<BucketId>(b));
        std::ranges::copy(part_of(first.f32(), range), shard.values().f32().begin() + window.begin);
      }
    }
  }

  ReplayOutcome run() {
    // Each shard in turn applies recorded pushes until its next push needs values that another
    // shard has not sent yet.
    for (bool is_advancing = true; is_advancing;) {
      is_advancing = false;
      for (std::size_t s = 0; s < next_.size(); ++s) {
        while (next_[s] < entries(s).size() && replay(s, entries(s)[next_[s]])) {
          ++next_[s];
          is_advancing = true;
        }
      }
    }
    for (std::size_t s = 0; s < next_.size(); ++s) {
      if (next_[s] < entries(s).size())
        throw mismatch(s, "a gradient of values that were not sent");
    }
    return outcome();
  }

 private:
  struct Worker {
    std::vector<float> values;            // values as received, [arena total]
    std::vector<std::uint64_t> versions;  // versions of `values`, by bucket of the job
    std::optional<OutgoingGradient> gradient;
    std::uint64_t sequence = 0;  // number of the push with this gradient
    // With displacements: the worker's own optimizer, and how many updates it has made.
    std::optional<OptimizerSlots> inner;
    std::int64_t updates = 0;
  };

  const std::vector<ps::OrderEntry>& entries(std::size_t s) const {
    return job_.shards[s].record.entries;
  }

  FileError mismatch(std::size_t s, const std::string& what) const {
    return FileError(fmt::format(
        "{}: entry {} does not follow from those before it: {}; are all records of one run, and is "
        "the data the one that it trained on?",
        job_.shards[s].file.string(), next_[s], what));
  }

  // The number of lanes fixes the order of additions, so each number of lanes has its own device.
  VirtualDevice& device_of(int lanes) {
    std::unique_ptr<VirtualDevice>& device = devices_[lanes];
    if (device == nullptr) {
      StrategyOptions options;
      options.seed = seed_;
      options.lanes = lanes;
      options.batch_size_per_replica = job_.declaration.batch_size;
      device = std::make_unique<VirtualDevice>(options, graph_, *data_.test, EvaluationOptions{});
    }
    return *device;
  }

  Worker& worker_of(const ps::OrderEntry& entry) {
    const auto [at, is_new] = workers_.try_emplace({entry.worker, entry.incarnation});
    Worker& worker = at->second;
    if (is_new) {
      worker.values.resize(static_cast<std::size_t>(graph_.parameter_layout().total()));
      worker.versions.resize(job_.placement.buckets.size());
      worker.gradient.emplace(compression_, job_.placement);
      for (const auto& served : served_) served->shard->join(entry.worker, entry.incarnation, 0);
    }
    return worker;
  }

  // Replays one entry of shard s's record, such as an applied push. Returns false if the push was
  // computed from values that another shard has not sent yet in this replay.
  bool replay(std::size_t s, const ps::OrderEntry& entry) {
    if (entry.kind == EntryKind::kWritten || entry.kind == EntryKind::kInnerStep) return true;
    if (entry.kind == EntryKind::kAnswered) {
      answer(s, entry);
      return true;
    }
    Worker& worker = worker_of(entry);
    // The gradient of a dropped push is computed, too: it changes what compression left out so far.
    if (worker.sequence != entry.sequence && !compute(worker, entry)) return false;
    if (entry.kind == EntryKind::kApplied) apply(s, entry, worker);
    return true;
  }

  void answer(std::size_t s, const ps::OrderEntry& entry) {
    Worker& worker = worker_of(entry);
    const auto b =
        static_cast<std::size_t>(job_.shards[s].job_bucket[static_cast<std::size_t>(entry.bucket)]);
    ps::Shard& shard = *served_[s]->shard;
    shard.read({.worker = entry.worker,
                .incarnation = entry.incarnation,
                .bucket = entry.bucket,
                .values = part_of(std::span(worker.values), job_.placement.buckets[b])});
    events_.clear();
    shard.work(entry.bucket, events_);
    if (shard.view(entry.bucket).version != entry.version_after) {
      throw mismatch(s, fmt::format("expected values of version {}, found {}", entry.version_after,
                                    shard.view(entry.bucket).version));
    }
    worker.versions[b] = entry.version_after;
  }

  bool compute(Worker& worker, const ps::OrderEntry& entry) {
    const RecordedPush& push = job_.pushes.at({entry.worker, entry.incarnation, entry.sequence});
    if (push.lanes == 0) return false;
    for (std::size_t b = 0; b < worker.versions.size(); ++b) {
      const std::uint64_t read = push.versions_read[b];
      if (worker.versions[b] == 0 || (read != 0 && worker.versions[b] != read)) return false;
    }
    VirtualDevice& device = device_of(push.lanes);
    device.load(worker.values);
    if (push.inner.empty()) {
      train(device, push.batch);
    } else {
      train_round(device, push.inner, worker);
    }
    worker.gradient->take(device.gradients(), true);
    worker.sequence = entry.sequence;
    ++pushes_;
    return true;
  }

  void train(VirtualDevice& device, const ps::SampleRange& batch) {
    reader_.fill(batch, batch.end - batch.begin, slot_);
    // Training uses the statistics of the batch, so running statistics are not needed.
    device.train(slot_.batch, {});
  }

  // Leaves the displacement of the round in the device's gradients.
  void train_round(VirtualDevice& device, std::span<const InnerStep> steps, Worker& worker) {
    const bool resets = job_.agreed("--inner-state") == name(InnerState::kReset);
    if (!worker.inner || resets) {
      worker.inner.emplace(ps::optimizer_options(job_.declaration), device.values().num_elements());
      worker.updates = 0;
    }
    for (const InnerStep& step : steps) {
      train(device, step.batch);
      device.update(*worker.inner, {.learning_rate = step.learning_rate, .step = ++worker.updates});
    }
    displacement(device.gradients().f32(), worker.values, device.values().f32(), 1.0F);
  }

  void apply(std::size_t s, const ps::OrderEntry& entry, const Worker& worker) {
    ps::Shard& shard = *served_[s]->shard;
    const int bucket = job_.shards[s].job_bucket[static_cast<std::size_t>(entry.bucket)];
    shard.push({.id = {entry.worker, entry.incarnation, entry.sequence},
                .bucket = entry.bucket,
                .version = entry.version_read,
                .learning_rate = entry.learning_rate,
                .gradient = worker.gradient->part(bucket),
                .values = {}});
    events_.clear();
    shard.work(entry.bucket, events_);
    if (events_.size() != 1 || events_.front().kind != ps::ShardEvent::Kind::kApplied ||
        events_.front().version != entry.version_after ||
        events_.front().staleness != entry.staleness) {
      throw mismatch(s, fmt::format("expected an update to version {} with staleness {}",
                                    entry.version_after, entry.staleness));
    }
  }

  ReplayOutcome outcome() const {
    ReplayOutcome outcome{
        .model = graph_.name, .pushes = pushes_, .weights_hash = {}, .values = {}};
    outcome.values = make_host_tensor({graph_.parameter_layout().total()}, DType::kF32);
    for (const auto& served : served_) {
      const ps::Shard& shard = *served->shard;
      for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
        std::ranges::copy(shard.view(static_cast<BucketId>(b)).values,
                          outcome.values.f32().begin() + shard.buckets()[b].begin);
      }
    }
    outcome.weights_hash = weights_hash(outcome.values);
    return outcome;
  }

  const RecordedJob& job_;
  const DataSplits& data_;
  const std::uint64_t seed_;
  const ps::CompressionOptions compression_;
  const Graph graph_;
  const BatchReader reader_;
  BatchSlot slot_;
  std::map<int, std::unique_ptr<VirtualDevice>> devices_;  // one device per number of lanes
  std::vector<std::shared_ptr<ps::ServedVariables>> served_;
  std::map<std::pair<int, std::uint32_t>, Worker> workers_;
  std::vector<std::size_t> next_;  // next entry of each shard
  std::vector<ps::ShardEvent> events_;
  std::int64_t pushes_ = 0;
};

}  // namespace

ReplayOutcome replay_order(std::span<const std::filesystem::path> files, const DataSplits& data) {
  const RecordedJob job = read_recorded_job(files);
  if (job.agreed("--data") != describe_samples(data)) {
    throw UsageError(
        fmt::format("{}: the job trained on other data; give its --data", files.front().string()));
  }
  if (job.agreed("--init-from") != "absent") {
    throw UsageError(fmt::format(
        "{}: the job began with --init-from; only the seed's initial values can be replayed",
        files.front().string()));
  }
  return Replay(job, data).run();
}

}  // namespace syncopate::bench
