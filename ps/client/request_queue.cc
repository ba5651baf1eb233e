#include "ps/client/request_queue.h"

#include <chrono>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

// A shard that has not said anything about a push for so long is asked whether it knows it.
constexpr milliseconds kProbe(2000);
constexpr milliseconds kAskAgain(10000);

// Of variables, for a start or an evaluation; not of a step.
bool is_copy(ShardRequest::Kind kind) {
  return kind == ShardRequest::Kind::kWrite || kind == ShardRequest::Kind::kReadCut;
}

Deadline next_probe_of(ShardRequest::Kind kind) {
  return Deadline::after(kind == ShardRequest::Kind::kPush ? kProbe : kAskAgain);
}

}  // namespace

void RequestQueue::add(ShardRequest request) {
  const Key key{request.kind, request.bucket};
  check(!open_.contains(key), "one request of a kind per bucket at a time");
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

void RequestQueue::drop_copies_but(std::uint64_t cut) {
  for (auto entry = open_.begin(); entry != open_.end();) {
    const auto& [key, open] = *entry;
    if (key.first != ShardRequest::Kind::kReadCut ||
        open.request.message.body.AsReadCut()->cut == cut) {
      ++entry;
      continue;
    }
    give_credit_back(entry->second);
    std::erase(unsent_, key);
    entry = open_.erase(entry);
  }
}

std::int64_t RequestQueue::bytes_in_frames(const ShardRequest& request) const {
  if (!uses_segment_ || is_copy(request.kind)) return request.credit_bytes;
  if (request.kind == ShardRequest::Kind::kPull) return 0;
  const bool in_segment = request.message.body.AsPush()->codec == wire::Codec::F32;
  // Its answer goes through the segment all the same.
  return in_segment ? 0 : static_cast<std::int64_t>(request.payload.front().size());
}

// A copy that was given up has no answer, and is forgotten with the next appointment, which may
// wait for a push of ours: no push waits for copies.
bool RequestQueue::fits(ShardRequest::Kind kind, std::int64_t bytes) const {
  const bool is_alone = (is_copy(kind) ? credit_used_ : credit_of_steps_) == 0;
  return bytes == 0 || is_alone || credit_used_ + bytes <= credit_;
}

void RequestQueue::take_credit(OpenRequest& open, std::int64_t bytes) {
  open.held_bytes = bytes;
  credit_used_ += bytes;
  if (!is_copy(open.request.kind)) credit_of_steps_ += bytes;
}

std::vector<OpenRequest*> RequestQueue::take_what_fits() {
  std::vector<OpenRequest*> fitting;
  if (!is_connected_) return fitting;
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
    fitting.push_back(&open);
  }
  return fitting;
}

OpenRequest* RequestQueue::find_sent(Key key) {
  const auto found = open_.find(key);
  return found == open_.end() || !found->second.is_sent ? nullptr : &found->second;
}

void RequestQueue::send_again(OpenRequest& open) {
  give_credit_back(open);
  open.is_sent = false;
  unsent_.emplace_front(open.request.kind, open.request.bucket);
}

void RequestQueue::give_credit_back(OpenRequest& open) {
  const std::int64_t bytes = std::exchange(open.held_bytes, 0);
  credit_used_ -= bytes;
  if (!is_copy(open.request.kind)) credit_of_steps_ -= bytes;
}

void RequestQueue::finish(Key key) {
  const auto found = open_.find(key);
  give_credit_back(found->second);
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
