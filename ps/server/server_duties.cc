#include "ps/server/server_duties.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "models/base/log.h"
#include "models/base/replacing_file.h"
#include "models/base/secret.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {
namespace {

constexpr std::uint32_t kFirstIncarnation = 1;

std::filesystem::path start_count_path(const std::filesystem::path& dir) {
  return dir / "server-0-starts";
}

// Returns the end of the note about a roll-back: how many steps it takes back, and whether they are
// trained again.
std::string describe_later_steps(const wire::RollBackT& back) {
  if (back.steps <= 0) return "";  // negative: unknown
  const bool is_one = back.steps == 1;
  const std::string steps = fmt::format("{} step{} that", back.steps, is_one ? "" : "s");
  if (back.redone)
    return fmt::format(": {} ended after it {} done again", steps, is_one ? "is" : "are");
  return fmt::format(": the updates of {} {} acknowledged after it are lost here", steps,
                     is_one ? "was" : "were");
}

}  // namespace

ServerDuties::ServerDuties(const ServerOptions& options, DataService& data,
                           std::function<void(const std::string&)> note)
    : options_(options),
      data_(data),
      note_(std::move(note)),
      writer_(options.snapshot_dir, options.index, name_of_nonce(options.nonce),
              options.renew_snapshot_dir),
      snapshots_(writer_.existing()) {}

std::vector<std::vector<std::byte>> ServerDuties::job_snapshots() const {
  std::vector<std::vector<std::byte>> saved;
  // Without a nonce the snapshot files may belong to another job.
  if (options_.nonce.empty()) return saved;
  for (const std::uint64_t snapshot : snapshots_) {
    const std::vector<std::uint8_t> coordinator = writer_.read_coordinator(snapshot);
    const auto bytes = std::as_bytes(std::span(coordinator));
    if (!bytes.empty()) saved.emplace_back(bytes.begin(), bytes.end());
  }
  return saved;
}

wire::HelloT ServerDuties::hello() const {
  wire::HelloT hello = make_hello(/*role=*/1, options_.index, options_.workers, options_.servers);
  hello.server = std::make_unique<wire::ServerAddressT>();
  hello.server->index = options_.index;
  hello.server->endpoint = to_string(Endpoint{options_.host, data_.port()});
  hello.server->incarnation = incarnation_;
  hello.server->fingerprint = served_ == nullptr ? 0 : served_->fingerprint;
  hello.snapshots = snapshots_;
  return hello;
}

void ServerDuties::on_message(const wire::MessageT& message) {
  const wire::BodyUnion& body = message.body;
  switch (body.type) {
    case wire::Body::Welcome:
      incarnation_ = body.AsWelcome()->incarnation;
      return;
    case wire::Body::Declared:
      if (body.AsDeclared()->declaration == nullptr) return;
      return declare(*body.AsDeclared());
    case wire::Body::WorkerLeft:
      return data_.remove_worker(body.AsWorkerLeft()->worker, body.AsWorkerLeft()->incarnation);
    case wire::Body::Resting: {
      const wire::RestingT& resting = *body.AsResting();
      if (served_ == nullptr) return;
      served_->shard->rest(resting.worker, resting.incarnation, resting.sequence);
      return data_.schedule_all();
    }
    case wire::Body::Freeze:
      if (served_ == nullptr || body.AsFreeze()->snapshot == 0) return;
      return freeze(body.AsFreeze()->snapshot);
    case wire::Body::Snapshot:
      if (served_ == nullptr) return;
      return begin_snapshot(*body.AsSnapshot());
    case wire::Body::Release:
      return release(*body.AsRelease());
    case wire::Body::RollBack:
      // The snapshot is read in the background: reading a large file from a slow disk takes longer
      // than the peer timeout.
      roll_back_to_ = body.AsRollBack()->snapshot;
      roll_back_as_ = body.AsRollBack()->incarnation;
      after_roll_back_ = describe_later_steps(*body.AsRollBack());
      return writer_.read_later(*roll_back_to_);
    case wire::Body::Refused:
      failure_ = body.AsRefused()->line;
      return;
    case wire::Body::Failing:
      failure_ = body.AsFailing()->reason;
      return;
    case wire::Body::Finished:
      is_finished_ = true;
      drop_snapshots();
      if (options_.index == 0) reset_start_count(options_.snapshot_dir);
      return;
    default:
      return;  // not a message to a server
  }
}

void ServerDuties::declare(const wire::DeclaredT& declared) {
  const bool is_known = served_ != nullptr && declared.fingerprint == served_->fingerprint;
  if (!is_known) {
    if (incarnation_ == kFirstIncarnation) {
      // When the job begins without a nonce, the folder may hold snapshot files of an older job.
      drop_snapshots();
    }
    served_ = make_served_variables(*declared.declaration, options_.index);
    data_.set_running_statistics(
        std::vector<float>(static_cast<std::size_t>(served_->declaration.state_elements)));
    data_.serve(served_, incarnation_);
  }
  wire::DeclaredT answer;
  answer.fingerprint = served_->fingerprint;
  reply(wire::make_message(std::move(answer)));
}

void ServerDuties::drop_snapshots() {
  writer_.remove_all();
  snapshots_.clear();
}

void ServerDuties::freeze(std::uint64_t snapshot) {
  wire::FrozenT frozen;
  frozen.snapshot = snapshot;
  for (const WorkerClock& entry : served_->shard->freeze(snapshot)) {
    frozen.entries.emplace_back(entry.worker, entry.incarnation, entry.sequence);
  }
  reply(wire::make_message(std::move(frozen)));
}

void ServerDuties::begin_snapshot(const wire::SnapshotT& request) {
  auto snapshot = std::make_shared<ServedSnapshot>();
  snapshot->number = request.snapshot;
  for (const wire::SnapshotEntry& entry : request.entries) {
    snapshot->entries.push_back({entry.worker(), entry.incarnation(), entry.sequence()});
  }
  const Shard& shard = *served_->shard;
  snapshot->state.values = make_host_tensor(shard.values().shape(), DType::kF32);
  if (request.with_slots || request.to_file) {
    for (const Tensor& slot : shard.slots()) {
      snapshot->state.slots.push_back(make_host_tensor(slot.shape(), DType::kF32));
    }
  }
  snapshot->state.buckets.resize(shard.buckets().size());
  requested_ = request;
  data_.begin_snapshot(std::move(snapshot));
}

void ServerDuties::release(const wire::ReleaseT& release) {
  if (served_ != nullptr) served_->shard->thaw();
  requested_.reset();
  if (release.is_void) remove_snapshots_from(release.snapshot);
  data_.publish(nullptr);
  data_.schedule_all();
}

void ServerDuties::remove_snapshots_from(std::uint64_t snapshot) {
  writer_.remove_from(snapshot);
  snapshots_ = writer_.existing();
}

void ServerDuties::write_snapshot(std::shared_ptr<const ServedSnapshot> snapshot) {
  std::vector<std::uint8_t> coordinator;
  if (save_job_) {
    const std::optional<std::vector<std::byte>> saved = save_job_(snapshot->number);
    if (!saved) return;  // Release follows
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(saved->data());
    coordinator.assign(begin, begin + saved->size());
  }
  writer_.write({.snapshot = std::move(snapshot),
                 .declaration = served_->declaration,
                 .coordinator = std::move(coordinator)});
}

void ServerDuties::end_snapshot(bool is_written) {
  wire::SnapshotDoneT done;
  done.snapshot = requested_->snapshot;
  done.not_written = !is_written;
  int worker = 0;
  for (const StalenessHistogram& histogram : served_->shard->staleness()) {
    done.staleness.push_back(to_wire(worker++, histogram));
  }
  requested_.reset();
  reply(wire::make_message(std::move(done)));
}

std::vector<wire::MessageT> ServerDuties::take_replies() {
  if (const auto finished = data_.take_finished_snapshot();
      finished != nullptr && requested_ && requested_->snapshot == finished->number) {
    data_.publish(finished);
    if (requested_->to_file && !options_.snapshot_dir.empty()) {
      write_snapshot(finished);
    } else {
      end_snapshot(true);
    }
  }
  for (const DepartedWorker& departed : data_.take_departed_workers()) {
    wire::WorkerLeftT left;
    left.worker = departed.worker;
    left.incarnation = departed.incarnation;
    left.sequence = departed.sequence;
    reply(wire::make_message(left));
  }
  if (const auto written = writer_.take_written()) {
    snapshots_ = writer_.existing();
    if (requested_ && requested_->snapshot == *written) end_snapshot(true);
  }
  // The job goes on: a snapshot only protects it from the loss of a server.
  if (const auto unwritten = writer_.take_unwritten()) {
    snapshots_ = writer_.existing();
    log(LogLevel::kWarning,
        fmt::format("snapshot {} was not written: {}; {}, and the next one is tried after "
                    "--snapshot-every",
                    unwritten->snapshot, unwritten->reason,
                    snapshots_.empty() ? "no older snapshot is left" : "the older snapshots stay"));
    if (requested_ && requested_->snapshot == unwritten->snapshot) end_snapshot(false);
  }
  if (const auto file = writer_.take_read(); file && roll_back_to_ == file->number) restore(*file);
  if (const auto snapshot = writer_.take_unreadable()) report_unreadable(*snapshot);
  if (const auto problem = writer_.failure()) failure_ = problem;
  if (const auto problem = data_.failure()) failure_ = problem;
  return std::exchange(replies_, {});
}

void ServerDuties::restore(const SnapshotFile& file) {
  roll_back_to_.reset();
  // The job continues from this snapshot: later snapshots are void.
  remove_snapshots_from(file.number + 1);
  served_ = make_served_variables(file.declaration, options_.index);
  served_->shard->restore(file.state);
  data_.set_running_statistics(file.running_statistics);
  data_.serve(served_, incarnation_);
  note_(fmt::format("rolled back to snapshot {}{}", file.number, after_roll_back_));
  wire::RollBackT answer;
  answer.snapshot = file.number;
  answer.incarnation = roll_back_as_;
  reply(wire::make_message(answer));
}

// Reports a damaged snapshot file, which does not end the job: the coordinator chooses another one.
void ServerDuties::report_unreadable(std::uint64_t snapshot) {
  snapshots_ = writer_.existing();
  if (roll_back_to_ != snapshot) return;
  roll_back_to_.reset();
  wire::RollBackT answer;
  answer.snapshot = snapshot;
  answer.incarnation = roll_back_as_;
  answer.lost = true;
  reply(wire::make_message(answer));
}

StalenessTotals ServerDuties::staleness() const {
  if (served_ == nullptr) return {};
  return served_->shard->total_staleness();
}

int count_starts(const std::filesystem::path& dir, const std::string& nonce) {
  if (dir.empty() || nonce.empty()) return 0;
  int starts = 0;
  std::ifstream before(start_count_path(dir), std::ios::binary);
  before >> starts;
  // The rest of the file names the job.
  const std::string rest{std::istreambuf_iterator<char>(before), std::istreambuf_iterator<char>()};
  const std::string job = " " + name_of_nonce(nonce) + "\n";
  if (!before || rest != job) starts = 0;
  const std::string text = fmt::format("{}{}", starts + 1, job);
  replace_file(start_count_path(dir), text);
  return starts;
}

void reset_start_count(const std::filesystem::path& dir) {
  if (!dir.empty()) std::filesystem::remove(start_count_path(dir));
}

}  // namespace syncopate::ps
