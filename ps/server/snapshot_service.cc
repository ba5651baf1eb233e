#include "ps/server/snapshot_service.h"

#include <span>
#include <utility>

namespace syncopate::ps {

std::shared_ptr<ServedSnapshot> SnapshotService::begin(std::shared_ptr<ServedSnapshot> snapshot,
                                                       const ServedVariables& served) {
  copying_ = std::move(snapshot);
  buckets_left_ = static_cast<int>(served.job_bucket.size());
  if (buckets_left_ == 0) {
    buckets_left_ = 1;
    return on_bucket_copied(copying_->number);
  }
  served.shard->begin_snapshot(copying_->number, copying_->entries, {copying_, &copying_->state});
  return nullptr;
}

std::shared_ptr<ServedSnapshot> SnapshotService::on_bucket_copied(std::uint64_t snapshot) {
  // Copies of an abandoned snapshot's buckets still complete, and are ignored.
  if (copying_ == nullptr || copying_->number != snapshot || --buckets_left_ > 0) return nullptr;
  copying_->running_statistics = statistics_.average(copying_->entries);
  return std::exchange(copying_, nullptr);
}

std::optional<wire::Envelope> SnapshotService::read(WorkerSession& session,
                                                    const wire::ReadSnapshotT& header,
                                                    const ServedVariables& served) {
  const bool is_live = header.snapshot == wire::kLiveSnapshot;
  if (!is_live && (published_ == nullptr || published_->number != header.snapshot))
    return std::nullopt;
  wire::SnapshotValuesT answer;
  answer.snapshot = header.snapshot;
  answer.bucket = header.bucket;
  answer.with_slots = header.with_slots;
  answer.state = header.state;
  wire::Envelope message = envelope(session.peer, make_message(answer));
  // Live values may change with the next push, so a copy is sent; a snapshot's memory is kept until
  // its frame is sent.
  const auto add = [&](std::span<const std::byte> bytes) {
    message.frames.push_back(
        is_live ? wire::copied_frame(bytes)
                : wire::borrowed_frame(bytes, [kept = published_]() mutable { kept.reset(); }));
  };
  if (header.state) {
    add(std::as_bytes(
        std::span(is_live ? statistics_.average({}) : published_->running_statistics)));
    return message;
  }
  const int bucket =
      sessions_.shard_bucket(session, served, "request for a snapshot", header.bucket);
  if (bucket < 0) return std::nullopt;
  const Shard& shard = *served.shard;
  const std::span<const Tensor> slots =
      is_live ? shard.slots() : std::span<const Tensor>(published_->state.slots);
  if (header.with_slots && slots.size() != shard.slots().size()) {
    sessions_.drop(session, "request for a snapshot", header.bucket,
                   "this snapshot has no optimizer slots");
    return std::nullopt;
  }
  const auto [begin, count] = shard.element_range(bucket);
  const auto part = [&, begin = begin, count = count](const Tensor& block) {
    return std::as_bytes(
        block.f32().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
  };
  add(part(is_live ? shard.values() : published_->state.values));
  if (header.with_slots) {
    for (const Tensor& slot : slots) add(part(slot));
  }
  return message;
}

}  // namespace syncopate::ps
