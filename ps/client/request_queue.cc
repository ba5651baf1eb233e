#include "ps/client/request_queue.h"

#include <chrono>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

// After this time without an answer to a push, the client asks the shard whether it has received
// the push.
constexpr milliseconds kProbePush(2000);
// After this time without an answer, a pull, a write or a read is sent again. It is longer than for
// a push: the messages are larger.
constexpr milliseconds kRepeatRequest(10000);

// Returns whether the request copies variables, at the start or for a snapshot, rather than
// belonging to a step.
bool is_copy(ShardRequest::Kind kind) {
  return kind == ShardRequest::Kind::kWrite || kind == ShardRequest::Kind::kReadSnapshot;
}

Deadline next_probe_of(ShardRequest::Kind kind) {
  return Deadline::after(kind == ShardRequest::Kind::kPush ? kProbePush : kRepeatRequest);
}

}  // namespace

std::int64_t value_bytes(int bucket, const wire::DeclarationT& declaration) {
  return size_of(declaration.buckets[static_cast<std::size_t>(bucket)]) *
         bytes_per_value(values_format(declaration));
}

ShardRequest pull_request(int bucket, const wire::DeclarationT& declaration) {
  return {.kind = ShardRequest::Kind::kPull,
          .bucket = bucket,
          .credit_bytes = value_bytes(bucket, declaration)};
}

void RequestQueue::add(ShardRequest request) {
  const Key key{request.kind, request.bucket};
  check(!open_.contains(key), "only one request of a kind is open per bucket");
  open_[key].request = std::move(request);
  unsent_.push_back(key);
}

void RequestQueue::begin_connection(std::int64_t credit, bool uses_segment) {
  is_connected_ = true;
  uses_segment_ = uses_segment;
  credit_ = credit;
  credit_used_ = 0;
  credit_of_steps_ = 0;
}

void RequestQueue::end_connection() {
  is_connected_ = false;
  credit_used_ = 0;
  credit_of_steps_ = 0;
  unsent_.clear();
  for (auto& [key, open] : open_) {
    open.is_sent = false;
    open.held_bytes = 0;
    open.times_unknown = 0;
    open.next_probe.reset();
    unsent_.push_back(key);
  }
}

void RequestQueue::clear() {
  open_.clear();
  end_connection();
}

void RequestQueue::drop_snapshot_reads_except(std::uint64_t snapshot) {
  for (auto entry = open_.begin(); entry != open_.end();) {
    const auto& [key, open] = *entry;
    if (key.first != ShardRequest::Kind::kReadSnapshot ||
        open.request.message.body.AsReadSnapshot()->snapshot == snapshot) {
      ++entry;
      continue;
    }
    return_credit(entry->second);
    std::erase(unsent_, key);
    entry = open_.erase(entry);
  }
}

std::int64_t RequestQueue::bytes_in_frames(const ShardRequest& request) const {
  if (!uses_segment_ || is_copy(request.kind)) return request.credit_bytes;
  if (request.kind == ShardRequest::Kind::kPull) return 0;
  const bool in_segment = request.message.body.AsPush()->codec == wire::Codec::F32;
  // A compressed push goes through message frames, but its answer through the shared segment.
  return in_segment ? 0 : static_cast<std::int64_t>(request.payload.front().size());
}

// A push never waits for copies (writes, reads of a snapshot) alone, which could be a deadlock: a
// read of a withdrawn snapshot is never answered, and is dropped only with the next assignment,
// which may wait for a push of this worker.
bool RequestQueue::fits(ShardRequest::Kind kind, std::int64_t bytes) const {
  const bool is_alone = (is_copy(kind) ? credit_used_ : credit_of_steps_) == 0;
  return bytes == 0 || is_alone || credit_used_ + bytes <= credit_;
}

void RequestQueue::take_credit(OpenRequest& open, std::int64_t bytes) {
  open.held_bytes = bytes;
  credit_used_ += bytes;
  if (!is_copy(open.request.kind)) credit_of_steps_ += bytes;
}

std::vector<OpenRequest*> RequestQueue::take_sendable() {
  std::vector<OpenRequest*> sendable;
  if (!is_connected_) return sendable;
  bool do_copies_wait = false;
  for (auto next = unsent_.begin(); next != unsent_.end();) {
    const Key key = *next;
    OpenRequest& open = open_.at(key);
    const std::int64_t bytes = bytes_in_frames(open.request);
    const bool waits = !fits(key.first, bytes);
    if (waits && !is_copy(key.first)) break;
    do_copies_wait = do_copies_wait || waits;
    if (do_copies_wait && is_copy(key.first)) {
      ++next;
      continue;
    }
    next = unsent_.erase(next);
    open.is_sent = true;
    take_credit(open, bytes);
    open.next_probe = next_probe_of(key.first);
    sendable.push_back(&open);
  }
  return sendable;
}

OpenRequest* RequestQueue::find_sent(Key key) {
  const auto found = open_.find(key);
  return found == open_.end() || !found->second.is_sent ? nullptr : &found->second;
}

void RequestQueue::send_again(OpenRequest& open) {
  return_credit(open);
  open.is_sent = false;
  unsent_.emplace_front(open.request.kind, open.request.bucket);
}

void RequestQueue::return_credit(OpenRequest& open) {
  const std::int64_t bytes = std::exchange(open.held_bytes, 0);
  credit_used_ -= bytes;
  if (!is_copy(open.request.kind)) credit_of_steps_ -= bytes;
}

void RequestQueue::finish(Key key) {
  const auto found = open_.find(key);
  return_credit(found->second);
  open_.erase(found);
}

std::vector<OpenRequest*> RequestQueue::take_overdue() {
  std::vector<OpenRequest*> overdue;
  for (auto& [key, open] : open_) {
    if (!open.is_sent || !open.next_probe || !open.next_probe->passed()) continue;
    open.next_probe = next_probe_of(key.first);
    overdue.push_back(&open);
  }
  return overdue;
}

}  // namespace syncopate::ps
