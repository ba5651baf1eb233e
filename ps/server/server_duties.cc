#include "ps/server/server_duties.h"

#include <span>
#include <utility>

#include "ps/server/start_count.h"

namespace syncopate::ps {
namespace {

constexpr std::uint32_t kFirstIncarnation = 1;

}  // namespace

ServerDuties::ServerDuties(const ServerOptions& options, DataService& data,
                           std::function<void(const std::string&)> note)
    : options_(options),
      data_(data),
      note_(std::move(note)),
      writer_(options.snapshot_dir, options.index, options.nonce),
      snapshots_(writer_.existing()) {}

std::vector<std::vector<std::byte>> ServerDuties::saved_jobs() const {
  std::vector<std::vector<std::byte>> saved;
  // Jobs without a name cannot be told apart.
  if (options_.nonce.empty()) return saved;
  for (const std::uint64_t cut : snapshots_) {
    const std::vector<std::uint8_t> coordinator = writer_.read_coordinator(cut);
    const auto bytes = std::as_bytes(std::span(coordinator));
    if (!bytes.empty()) saved.emplace_back(bytes.begin(), bytes.end());
  }
  return saved;
}

wire::ServerAddressT ServerDuties::address() const {
  wire::ServerAddressT address;
  address.index = options_.index;
  address.endpoint = to_string(Endpoint{options_.host, data_.port()});
  address.incarnation = incarnation_;
  address.fingerprint = served_ == nullptr ? 0 : served_->fingerprint;
  return address;
}

void ServerDuties::obey(const wire::MessageT& message) {
  const wire::BodyUnion& body = message.body;
  switch (body.type) {
    case wire::Body::Welcome:
      incarnation_ = body.AsWelcome()->incarnation;
      return;
    case wire::Body::Declared:
      if (body.AsDeclared()->declaration == nullptr) return;
      return declare(*body.AsDeclared());
    case wire::Body::WorkerLeft:
      return data_.forget(body.AsWorkerLeft()->worker, body.AsWorkerLeft()->incarnation);
    case wire::Body::Resting: {
      const wire::RestingT& resting = *body.AsResting();
      if (served_ == nullptr) return;
      served_->shard->rest(resting.worker, resting.incarnation, resting.sequence);
      return data_.look_again();
    }
    case wire::Body::Freeze:
      if (served_ == nullptr || body.AsFreeze()->cut == 0) return;
      return freeze(body.AsFreeze()->cut);
    case wire::Body::Cut:
      if (served_ == nullptr) return;
      return begin_cut(*body.AsCut());
    case wire::Body::Release:
      return release(*body.AsRelease());
    case wire::Body::RollBack:
      // A large file on a slow disk takes longer than one may be silent.
      rolls_back_ = body.AsRollBack()->cut;
      return writer_.read_later(*rolls_back_);
    case wire::Body::Refused:
      failure_ = body.AsRefused()->line;
      return;
    case wire::Body::Failing:
      failure_ = body.AsFailing()->reason;
      return;
    case wire::Body::Finished:
      is_finished_ = true;
      forget_snapshots();
      if (options_.index == 0) forget_starts(options_.snapshot_dir);
      return;
    default:
      return;  // nothing that concerns a server
  }
}

void ServerDuties::declare(const wire::DeclaredT& declared) {
  const bool is_known = served_ != nullptr && declared.fingerprint == served_->fingerprint;
  if (!is_known) {
    if (incarnation_ == kFirstIncarnation) {
      // The job begins: where jobs have no name of their own, an older one's files may be here.
      forget_snapshots();
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

void ServerDuties::forget_snapshots() {
  writer_.remove_all();
  snapshots_.clear();
}

void ServerDuties::freeze(std::uint64_t cut) {
  wire::FrozenT frozen;
  frozen.cut = cut;
  for (const WorkerClock& entry : served_->shard->freeze(cut)) {
    frozen.entries.emplace_back(entry.worker, entry.incarnation, entry.sequence);
  }
  reply(wire::make_message(std::move(frozen)));
}

void ServerDuties::begin_cut(const wire::CutT& cut) {
  auto copy = std::make_shared<CutCopy>();
  copy->cut = cut.cut;
  for (const wire::CutEntry& entry : cut.entries) {
    copy->entries.push_back({entry.worker(), entry.incarnation(), entry.sequence()});
  }
  const Shard& shard = *served_->shard;
  copy->state.values = make_host_tensor(shard.values().shape(), DType::kF32);
  for (const Tensor& slot : shard.slots()) {
    copy->state.slots.push_back(make_host_tensor(slot.shape(), DType::kF32));
  }
  copy->state.buckets.resize(shard.buckets().size());
  cut_ = cut;
  data_.expect_cut(std::move(copy));
}

void ServerDuties::release(const wire::ReleaseT& release) {
  if (served_ != nullptr) served_->shard->thaw();
  cut_.reset();
  if (release.is_void) remove_snapshots_from(release.cut);
  data_.publish(nullptr);
  data_.look_again();
}

void ServerDuties::remove_snapshots_from(std::uint64_t cut) {
  writer_.remove_from(cut);
  snapshots_ = writer_.existing();
}

void ServerDuties::end_cut() {
  wire::CutDoneT done;
  done.cut = cut_->cut;
  const std::vector<StalenessHistogram> histograms = staleness();
  for (std::size_t w = 0; w < histograms.size(); ++w) {
    auto one = std::make_unique<wire::StalenessT>();
    one->worker = static_cast<int>(w);
    one->counts = histograms[w].counts();
    one->sum = histograms[w].sum();
    one->max = histograms[w].max();
    done.staleness.push_back(std::move(one));
  }
  cut_.reset();
  reply(wire::make_message(std::move(done)));
}

std::vector<wire::MessageT> ServerDuties::take_replies() {
  if (const auto copy = data_.finished_cut(); copy != nullptr && cut_ && cut_->cut == copy->cut) {
    data_.publish(copy);
    if (cut_->to_file && !options_.snapshot_dir.empty()) {
      writer_.write(
          {.copy = copy, .declaration = served_->declaration, .coordinator = cut_->coordinator});
    } else {
      end_cut();
    }
  }
  if (const auto written = writer_.take_written()) {
    snapshots_ = writer_.existing();
    if (cut_ && cut_->cut == *written) end_cut();
  }
  if (const auto file = writer_.take_read(); file && rolls_back_ == file->cut) go_back_to(*file);
  if (const auto cut = writer_.take_unreadable()) do_without(*cut);
  if (const auto problem = writer_.failure()) failure_ = problem;
  if (const auto problem = data_.failure()) failure_ = problem;
  return std::exchange(replies_, {});
}

void ServerDuties::go_back_to(const SnapshotFile& file) {
  rolls_back_.reset();
  // The job goes on from here: later ones are of a past that is void.
  remove_snapshots_from(file.cut + 1);
  served_ = make_served_variables(file.declaration, options_.index);
  served_->shard->restore(file.state);
  data_.set_running_statistics(file.running_statistics);
  data_.serve(served_, incarnation_);
  note_("went back to snapshot " + std::to_string(file.cut));
  wire::RollBackT answer;
  answer.cut = file.cut;
  answer.incarnation = incarnation_;
  reply(wire::make_message(answer));
}

// One damaged file does not end the job: shard 0 chooses another cut.
void ServerDuties::do_without(std::uint64_t cut) {
  snapshots_ = writer_.existing();
  if (rolls_back_ != cut) return;
  rolls_back_.reset();
  wire::RollBackT answer;
  answer.cut = cut;
  answer.incarnation = incarnation_;
  answer.lost = true;
  reply(wire::make_message(answer));
}

std::vector<StalenessHistogram> ServerDuties::staleness() const {
  if (served_ == nullptr) return {};
  return served_->shard->staleness();
}

}  // namespace syncopate::ps
