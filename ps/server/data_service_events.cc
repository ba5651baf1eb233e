// What the shard answers: who does its work, in which order its events are taken, and what is sent
// because of them.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ps/coordinator/wire_conversion.h"
#include "ps/server/data_service.h"

namespace syncopate::ps {
namespace {

// Below this the hand-over to another thread takes longer than the work.
constexpr std::int64_t kInlineElements = 16384;
constexpr std::chrono::microseconds kLongestPeersWait(std::numeric_limits<std::uint32_t>::max());

}  // namespace

// What comes through a socket keeps ZeroMQ's thread as busy as the update keeps another one. To
// wake a third for each message, where there is no third CPU, costs more than it brings.
int DataService::threads_for(const Session& session) const {
  return session.segment != nullptr ? options_.threads : options_.threads - 1;
}

void DataService::schedule(int shard_bucket, int threads) {
  const Bucket range = served_->shard->buckets()[static_cast<std::size_t>(shard_bucket)];
  const std::int64_t elements = range.end - range.begin;
  if (elements > kInlineElements && threads > 1) {
    const std::int64_t pieces = (elements + kInlineElements - 1) / kInlineElements;
    const auto helpers = static_cast<int>(std::min<std::int64_t>(pieces, threads));
    updates_->work_on(served_->shard, shard_bucket, helpers);
    return;
  }
  std::vector<ShardEvent> events;
  served_->shard->work(shard_bucket, events);
  std::vector<ShardEvent> ordered;
  for (const ShardEvent& event : events) put_in_order(event, ordered);
  if (!ordered.empty()) take_events(ordered);
}

void DataService::schedule_all() {
  const int buckets = static_cast<int>(served_->job_bucket.size());
  for (int b = 0; b < buckets; ++b) schedule(b, options_.threads);
}

// Two threads that end two pieces of work may hand over their events the other way round, and an
// answer must not be taken before what it answers.
void DataService::put_in_order(const ShardEvent& event, std::vector<ShardEvent>& ordered) {
  EventOrder& of = event_order_[event.bucket];
  of.early.emplace(event.order, event);
  for (auto next = of.early.find(of.next); next != of.early.end(); next = of.early.find(of.next)) {
    ordered.push_back(next->second);
    of.early.erase(next);
    ++of.next;
  }
}

void DataService::take_events(const std::vector<ShardEvent>& events) {
  std::vector<std::uint64_t> applied_now;
  for (const ShardEvent& event : events) {
    if (event.kind == ShardEvent::Kind::kSnapshotCopied) {
      finish_cut_bucket(event.token);
      continue;
    }
    const auto found = open_.find(event.token);
    if (found == open_.end()) continue;  // of before a restart
    if (event.kind == ShardEvent::Kind::kAnswered) {
      answer(event, found->second);
      open_.erase(found);
      continue;
    }
    if (event.kind == ShardEvent::Kind::kForgotten) {
      if (found->second.answer.num_elements() > 0) {
        buffers_->give_back(std::move(found->second.answer));
      }
      open_.erase(found);
      continue;
    }
    applied(event, found->second);
    if (found->second.push.wants_values) {
      applied_now.push_back(event.token);
    } else {
      open_.erase(found);
    }
  }
  // Applied, but its worker may not read yet: its credit comes back all the same.
  for (const std::uint64_t token : applied_now) {
    const auto found = open_.find(token);
    if (found == open_.end()) continue;
    Open& open = found->second;
    open.frames.clear();
    open.aligned = {};
    const auto session = sessions_.find(open.worker);
    if (session == sessions_.end() || open.is_consumed) continue;
    open.is_consumed = true;
    wire::ConsumedT consumed;
    consumed.bucket = open.bucket;
    consumed.sequence = open.push.sequence;
    socket_->send(envelope(session->second.peer, make_message(consumed)));
  }
  // After the answers: they are waited for.
  if (std::exchange(has_news_, false)) news_event_.notify();
}

void DataService::applied(const ShardEvent& event, Open& open) {
  const bool was_applied = event.kind == ShardEvent::Kind::kApplied;
  open.applied = Clock::now();
  const bool in_step = consistency_of(served_->declaration) == Consistency::kSync;
  if (record_ != nullptr && was_applied) record_->applied(event, open.incarnation, open.push);
  // What became of the push itself is told by its own event.
  if (!open.push.ends_step || event.is_duplicate || (!was_applied && !in_step)) return;
  const auto session = sessions_.find(open.worker);
  if (was_applied && session != sessions_.end() &&
      session->second.incarnation == open.incarnation) {
    std::vector<float> values;
    if (open.push.has_state) {
      const std::span<const std::byte> bytes = open.frames.back().bytes();
      values.resize(bytes.size() / sizeof(float));
      if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    }
    statistics_.add(open.worker, open.push.sequence, open.push.samples, std::move(values));
  }
  if (was_applied && in_step) {
    Sums& of = sums_[event.bucket];
    if (of.version != event.version) {
      of = Sums{.version = event.version, .sums = {}, .last_heard = open.heard};
    }
    of.last_heard = std::max(of.last_heard, open.heard);
    of.sums.loss += open.push.loss;
    of.sums.correct += open.push.correct;
    of.sums.samples += open.push.samples;
    of.sums.stops.resize(std::max(of.sums.stops.size(), open.push.stops.size()));
    for (std::size_t i = 0; i < open.push.stops.size(); ++i) of.sums.stops[i] += open.push.stops[i];
  }
  {
    const std::lock_guard lock(mutex_);
    news_.push_back({open.worker, open.incarnation, open.push, was_applied});
  }
  has_news_ = true;
}

std::chrono::microseconds DataService::peers_wait(const Open& open, const Sums* of_step) const {
  const Clock::duration waited =
      of_step != nullptr ? of_step->last_heard - open.heard : Clock::now() - open.applied;
  return std::clamp(std::chrono::duration_cast<std::chrono::microseconds>(waited),
                    std::chrono::microseconds(0), kLongestPeersWait);
}

void DataService::answer(const ShardEvent& event, Open& open) {
  const auto session = sessions_.find(open.worker);
  const bool is_there =
      session != sessions_.end() && session->second.incarnation == open.incarnation;
  if (record_ != nullptr) record_->answered(event, open.incarnation);
  if (!is_there) {
    if (open.answer.num_elements() > 0) buffers_->give_back(std::move(open.answer));
    return;
  }
  wire::ValuesT values;
  values.bucket = open.bucket;
  values.version = event.version;
  values.sequence = open.push.sequence;
  // As it was asked for: a worker that has greeted again since may have got a segment.
  values.in_segment = open.answer.num_elements() == 0;
  values.staleness = event.staleness;
  if (open.push.ends_step) {
    const auto found = sums_.find(event.bucket);
    const bool is_its_step = found != sums_.end() && found->second.version == event.version;
    const Sums* const of_step = is_its_step ? &found->second : nullptr;
    if (of_step != nullptr) values.report = std::make_unique<wire::StepSumsT>(of_step->sums);
    values.peers_wait_us = static_cast<std::uint32_t>(peers_wait(open, of_step).count());
  }
  const bool in_frame = !values.in_segment;
  wire::Envelope message = envelope(session->second.peer, make_message(std::move(values)));
  if (in_frame) {
    const std::span<const std::byte> bytes = std::as_bytes(open.answer.f32());
    message.frames.push_back(
        wire::Frame::borrow(bytes, [buffers = buffers_, buffer = std::move(open.answer)]() mutable {
          buffers->give_back(std::move(buffer));
        }));
  }
  socket_->send(std::move(message));
}

void DataService::finish_cut_bucket(std::uint64_t cut) {
  // What had begun of one that was given up ends as well.
  if (expected_cut_ == nullptr || expected_cut_->cut != cut || --cut_buckets_left_ > 0) return;
  expected_cut_->running_statistics = statistics_.average(expected_cut_->entries);
  if (record_ != nullptr) record_->flush();
  {
    const std::lock_guard lock(mutex_);
    finished_cut_ = std::move(expected_cut_);
  }
  expected_cut_ = nullptr;
  news_event_.notify();
}

}  // namespace syncopate::ps
