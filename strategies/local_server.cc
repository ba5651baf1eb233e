#include "strategies/local_server.h"

#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate {

LocalServer::LocalServer(ps::wire::DeclarationT declaration)
    : served_(ps::make_served_variables(std::move(declaration), 0)) {}

void LocalServer::begin(const ps::RunPosition& start, std::vector<float> statistics) {
  // The shard counts its updates by its versions: Adam's bias correction uses the count.
  const std::int64_t gradients = ps::gradients_per_update(ps::consistency_options(declaration()));
  const std::int64_t pushes =
      declaration().outer == nullptr ? start.step * gradients : start.pushes;
  const auto version = static_cast<std::uint64_t>(pushes) + 1;
  ps::ShardSnapshot state{.values = shard().values(),
                          .slots = {shard().slots().begin(), shard().slots().end()},
                          .buckets = {}};
  state.buckets.resize(shard().buckets().size(), {.version = version, .workers = {}});
  shard().restore(state);
  statistics_.emplace(std::move(statistics));
}

void LocalServer::join(ps::WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  shard().join(worker, incarnation, sequence);
  is_due_ = true;
}

ps::wire::HelloT LocalServer::hello() const {
  ps::wire::HelloT hello;
  hello.role = 1;
  hello.world_size = declaration().workers;
  hello.num_servers = 1;
  hello.server = std::make_unique<ps::wire::ServerAddressT>();
  return hello;
}

void LocalServer::reply(ps::wire::MessageT message) { replies_.push_back(std::move(message)); }

void LocalServer::on_message(const ps::wire::MessageT& message) {
  const ps::wire::BodyUnion& body = message.body;
  switch (body.type) {
    case ps::wire::Body::Declared: {
      ps::wire::DeclaredT answer;
      answer.fingerprint = served_->fingerprint;
      return reply(ps::wire::make_message(std::move(answer)));
    }
    case ps::wire::Body::Resting: {
      const ps::wire::RestingT& resting = *body.AsResting();
      shard().rest(resting.worker, resting.incarnation, resting.sequence);
      is_due_ = true;
      return;
    }
    case ps::wire::Body::WorkerLeft:
      shard().leave(body.AsWorkerLeft()->worker, body.AsWorkerLeft()->incarnation);
      is_due_ = true;
      return;
    case ps::wire::Body::Freeze:
      return freeze(body.AsFreeze()->snapshot);
    case ps::wire::Body::Snapshot:
      return begin_snapshot(*body.AsSnapshot());
    case ps::wire::Body::Release:
      shard().thaw();
      published_.reset();
      is_due_ = true;
      return;
    default:
      return;  // other messages need no action for workers in this process
  }
}

std::vector<ps::wire::MessageT> LocalServer::take_replies() { return std::exchange(replies_, {}); }

bool LocalServer::take_due() noexcept { return std::exchange(is_due_, false); }

void LocalServer::freeze(std::uint64_t snapshot) {
  ps::wire::FrozenT frozen;
  frozen.snapshot = snapshot;
  for (const ps::WorkerClock& entry : shard().freeze(snapshot)) {
    frozen.entries.emplace_back(entry.worker, entry.incarnation, entry.sequence);
  }
  is_due_ = true;
  reply(ps::wire::make_message(std::move(frozen)));
}

void LocalServer::begin_snapshot(const ps::wire::SnapshotT& request) {
  snapshot_ = std::make_shared<ps::ServedSnapshot>();
  snapshot_->number = request.snapshot;
  for (const ps::wire::SnapshotEntry& entry : request.entries) {
    snapshot_->entries.push_back({entry.worker(), entry.incarnation(), entry.sequence()});
  }
  snapshot_->state.values = make_host_tensor(shard().values().shape(), DType::kF32);
  if (request.with_slots) {
    for (const Tensor& slot : shard().slots()) {
      snapshot_->state.slots.push_back(make_host_tensor(slot.shape(), DType::kF32));
    }
  }
  buckets_to_copy_ = shard().buckets().size();
  shard().begin_snapshot(request.snapshot, snapshot_->entries, {snapshot_, &snapshot_->state});
  is_due_ = true;
}

void LocalServer::copied() {
  check(snapshot_ != nullptr && buckets_to_copy_ > 0,
        "a copied bucket belongs to a snapshot in progress");
  if (--buckets_to_copy_ == 0) end_snapshot();
}

void LocalServer::end_snapshot() {
  snapshot_->running_statistics = statistics_->average(snapshot_->entries);
  ps::wire::SnapshotDoneT done;
  done.snapshot = snapshot_->number;
  int worker = 0;
  for (const ps::StalenessHistogram& histogram : shard().staleness()) {
    done.staleness.push_back(ps::to_wire(worker++, histogram));
  }
  published_ = std::exchange(snapshot_, nullptr);
  reply(ps::wire::make_message(std::move(done)));
}

void LocalServer::trained(ps::WorkerId worker, std::uint64_t sequence, std::int64_t samples,
                          std::vector<float> statistics) {
  statistics_->add(worker, sequence, samples, std::move(statistics));
}

}  // namespace syncopate
