#include "ps/server/request_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

// Updates of fewer elements are done by the data thread itself: to pass one to another thread takes
// longer than the update.
constexpr std::int64_t kInlineElements = 16384;
// A push with a sequence further ahead of the worker's last one is refused: taken, it would void
// all its pushes before. Workers skip a number only for a step that a roll-back has voided.
constexpr std::uint64_t kMostAhead = 1000;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;  // of a push
constexpr std::chrono::microseconds kLongestPeersWait(std::numeric_limits<std::uint32_t>::max());

bool is_aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0;
}

std::string unfit(const char* what, std::size_t found, std::size_t expected) {
  return fmt::format("{} {}, expected {}", found, what, expected);
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  // An empty frame of values has no address to copy from.
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

RequestService::RequestService(const RequestServiceOptions& options, wire::Socket& socket,
                               WorkerSessions& sessions, SnapshotService& snapshots,
                               DataThreadQueue& queue, DataServiceResults& results)
    : options_(options),
      socket_(socket),
      sessions_(sessions),
      snapshots_(snapshots),
      results_(results),
      updates_(
          options.threads, [&queue] { queue.wake(); },
          [&results](const std::exception& error) { results.fail(error.what()); }) {}

void RequestService::serve(std::shared_ptr<ServedVariables> served, std::uint32_t incarnation) {
  if (current_.variables != nullptr) retired_.push_back(std::move(current_));
  current_ = ServedShard();
  current_.variables = std::move(served);
  current_.statistics.emplace(current_.variables->declaration.workers);
  current_.incarnation = incarnation;
  if (options_.record.empty()) return;
  record_.reset();  // a roll-back begins the same file again, which only one writer may have open
  record_ = std::make_unique<ServiceRecord>(options_.record, options_.index, options_.servers,
                                            incarnation, *current_.variables);
}

// A previous shard is freed when no update thread that works on it shares its ownership.
void RequestService::release_retired() {
  std::erase_if(retired_,
                [](const ServedShard& one) { return one.variables->shard.use_count() == 1; });
}

Bucket RequestService::bucket_range(int shard_bucket) const {
  return shard().buckets()[static_cast<std::size_t>(shard_bucket)];
}

std::size_t RequestService::state_bytes() const {
  return static_cast<std::size_t>(current_.variables->declaration.state_elements) * sizeof(float);
}

AnswerMemory RequestService::answer_window(const WorkerSession& session, ServedRequest& open,
                                           int shard_bucket) {
  const Bucket range = bucket_range(shard_bucket);
  const std::int64_t count = range.end - range.begin;
  if (session.segment != nullptr) {
    open.segment = session.segment;
    return session.segment->values.f32().subspan(static_cast<std::size_t>(range.begin),
                                                 static_cast<std::size_t>(count));
  }
  if (!current_.variables->declaration.bf16_values) {
    open.answer = buffers_->take(count, DType::kF32);
    return open.answer.f32();
  }
  open.answer = buffers_->take(count, DType::kBf16);
  auto* const words = reinterpret_cast<std::uint16_t*>(open.answer.bytes().data());
  return AnswerMemory(std::span(words, static_cast<std::size_t>(count)));
}

void RequestService::push(WorkerSession& session, wire::Envelope& envelope,
                          const wire::PushT& header) {
  const int bucket = sessions_.shard_bucket(session, *current_.variables, "push", header.bucket);
  if (bucket < 0) return;
  const auto drop = [&](const std::string& problem) {
    sessions_.drop(session, "push", header.bucket, problem);
  };
  if (header.sequence > session.last_push + kMostAhead) {
    return drop(fmt::format("its sequence {} is far ahead of {}, that of the last push",
                            header.sequence, session.last_push));
  }
  if (header.samples < 0 || header.samples > kMostSamples) {
    return drop(fmt::format("it has {} samples, expected 0 to {}", header.samples, kMostSamples));
  }
  const Bucket range = bucket_range(bucket);
  const auto count = static_cast<std::size_t>(range.end - range.begin);
  const bool in_segment = header.in_segment;
  // A worker may write to its segment at any time: data that must be checked has to come in a
  // frame.
  if (in_segment && header.codec != wire::Codec::F32) {
    return drop("it is compressed, in shared memory");
  }
  if (in_segment && session.segment == nullptr) {
    return drop("its shared memory is not mapped by this server");
  }
  const std::size_t frames = 1 + (in_segment ? 0 : 1) + (header.has_state ? 1 : 0);
  if (envelope.frames.size() != frames) {
    return drop(unfit("frames", envelope.frames.size(), frames));
  }
  const std::size_t last_bytes = envelope.frames.back().size();
  if (header.has_state && last_bytes != state_bytes()) {
    return drop(unfit("bytes of running statistics", last_bytes, state_bytes()));
  }

  const std::uint64_t token = next_token_++;
  ServedRequest& open =
      current_.open.add(token, session.worker, session.incarnation, header.bucket, header);
  open.received = Clock::now();
  open.frames = std::move(envelope.frames);
  PushRequest request{
      .id = {open.worker, session.incarnation, header.sequence},
      .bucket = bucket,
      .version = header.shard_incarnation == current_.incarnation ? header.version : 0,
      .learning_rate = header.learning_rate,
      .arrived = open.received.time_since_epoch(),
      .samples = header.samples,
      .token = token};
  request.gradient.codec = static_cast<Codec>(header.codec);
  request.gradient.num_elements = static_cast<std::int64_t>(count);
  if (in_segment) {
    open.segment = session.segment;
    request.gradient.bytes = std::as_bytes(
        session.segment->gradients.f32().subspan(static_cast<std::size_t>(range.begin), count));
  } else {
    request.gradient.bytes = wire::bytes_in(open.frames[1]);
  }
  if (!is_well_formed(request.gradient)) {
    const std::size_t size = request.gradient.bytes.size();
    current_.open.erase(token);
    return drop(fmt::format("{} bytes are no gradient of {} elements in {}", size, count,
                            wire::EnumNameCodec(header.codec)));
  }
  if (request.gradient.codec == Codec::kF32 && !is_aligned(request.gradient.bytes)) {
    open.aligned = floats_of(request.gradient.bytes);
    request.gradient.bytes = std::as_bytes(std::span(open.aligned));
  }
  if (header.wants_values) request.values = answer_window(session, open, bucket);
  if (!shard().push(request)) {
    current_.open.erase(token);
    return;
  }
  session.last_push = std::max(session.last_push, header.sequence);
  if (shard().merges_pushes()) return schedule_all();
  schedule(bucket, threads_for(session));
}

void RequestService::pull(WorkerSession& session, const wire::PullT& header) {
  // Each bucket of a pull is answered from its own memory, so a repeated bucket would cost memory.
  const std::size_t buckets = current_.variables->shard_bucket.size();
  if (header.buckets.size() > buckets) {
    return sessions_.drop(session, "pull", -1, unfit("buckets", header.buckets.size(), buckets));
  }
  for (const int job_bucket : header.buckets) {
    const int bucket = sessions_.shard_bucket(session, *current_.variables, "pull", job_bucket);
    if (bucket < 0) continue;
    const std::uint64_t token = next_token_++;
    ServedRequest& open =
        current_.open.add(token, session.worker, session.incarnation, job_bucket, {});
    const ReadRequest request{.worker = open.worker,
                              .incarnation = session.incarnation,
                              .bucket = bucket,
                              .values = answer_window(session, open, bucket),
                              .token = token};
    if (!shard().read(request)) {
      current_.open.erase(token);
      continue;
    }
    schedule(bucket, threads_for(session));
  }
  // The data thread may have ended an update here, after which other buckets have work.
  if (shard().merges_pushes()) schedule_all();
}

void RequestService::probe(const WorkerSession& session, const wire::ProbeT& header) {
  wire::ProbeAnswerT answer;
  for (const wire::PushName& push : header.pushes) {
    const bool is_known =
        current_.open.has_push(session.worker, session.incarnation, push.bucket(), push.sequence());
    if (!is_known) answer.unknown.push_back(push);
  }
  socket_.send(envelope(session.peer, make_message(std::move(answer))));
}

void RequestService::write(WorkerSession& session, const wire::Envelope& envelope,
                           const wire::WriteT& header) {
  if (header.state) return write_state(session, envelope, header);
  const int bucket = sessions_.shard_bucket(session, *current_.variables, "write", header.bucket);
  if (bucket < 0) return;
  const Bucket range = bucket_range(bucket);
  const std::size_t bytes = static_cast<std::size_t>(range.end - range.begin) * sizeof(float);
  const std::size_t count = 2 + (header.with_slots ? shard().slots().size() : 0);
  if (envelope.frames.size() != count) {
    return sessions_.drop(session, "write", header.bucket,
                          unfit("frames", envelope.frames.size(), count));
  }
  std::vector<std::span<const std::byte>> frames;
  for (std::size_t i = 1; i < envelope.frames.size(); ++i) {
    frames.push_back(wire::bytes_in(envelope.frames[i]));
    if (frames.back().size() != bytes) {
      return sessions_.drop(session, "write", header.bucket,
                            unfit("bytes", frames.back().size(), bytes));
    }
  }
  if (shard().write(bucket, header.version, frames) && record_ != nullptr) {
    record_->written(bucket, header.version);
  }
  wire::WrittenT written;
  written.bucket = header.bucket;
  socket_.send(wire::envelope(session.peer, make_message(written)));
}

void RequestService::write_state(WorkerSession& session, const wire::Envelope& envelope,
                                 const wire::WriteT& header) {
  const std::size_t expected = header.samples == 0 ? 0 : state_bytes();
  const std::span<const std::byte> bytes = envelope.frames.size() == 2
                                               ? wire::bytes_in(envelope.frames[1])
                                               : std::span<const std::byte>();
  if (envelope.frames.size() != 2 || bytes.size() != expected) {
    return sessions_.drop(session, "write", -1,
                          unfit("bytes of running statistics", bytes.size(), expected));
  }
  std::optional<std::vector<float>> statistics = floats_of(bytes);
  if (header.samples >= 0) {
    statistics = current_.statistics->add(session.worker, header.version, header.samples,
                                          *std::move(statistics));
  }
  if (statistics) snapshots_.statistics() = RunningStatistics(*std::move(statistics));
  wire::WrittenT written;
  written.bucket = header.bucket;
  written.state = true;
  socket_.send(wire::envelope(session.peer, make_message(written)));
}

// Messages from a socket keep ZeroMQ's thread as busy as the update keeps another thread. Waking a
// third thread for each message costs more than it gains where there is no third CPU.
int RequestService::threads_for(const WorkerSession& session) const {
  return session.segment != nullptr ? options_.threads : options_.threads - 1;
}

void RequestService::schedule(int shard_bucket, int threads) {
  const Bucket range = bucket_range(shard_bucket);
  const std::int64_t elements = range.end - range.begin;
  if (elements > kInlineElements && threads > 1) {
    const std::int64_t pieces = (elements + kInlineElements - 1) / kInlineElements;
    const auto helpers = static_cast<int>(std::min<std::int64_t>(pieces, threads));
    updates_.work_on(current_.variables->shard, shard_bucket, helpers);
    return;
  }
  std::vector<ShardEvent> events;
  shard().work(shard_bucket, events);
  if (!events.empty()) on_events(events);
}

void RequestService::schedule_all() {
  const int buckets = static_cast<int>(current_.variables->job_bucket.size());
  for (int b = 0; b < buckets; ++b) schedule(b, options_.threads);
}

std::optional<std::chrono::nanoseconds> RequestService::time_to_deadline() const {
  if (current_.variables == nullptr) return std::nullopt;
  const auto deadline = shard().next_deadline();
  if (!deadline) return std::nullopt;
  return *deadline - Clock::now().time_since_epoch();
}

void RequestService::update_due() {
  const auto wait = time_to_deadline();
  if (!wait || wait->count() > 0) return;
  shard().advance_to(Clock::now().time_since_epoch());
  schedule_all();
}

void RequestService::take_events() {
  if (current_.variables == nullptr) return;
  std::vector<ShardEvent> events;
  shard().take_events(events);
  if (events.empty()) return;
  on_events(events);
  if (shard().merges_pushes()) schedule_all();
}

void RequestService::on_events(const std::vector<ShardEvent>& events) {
  std::vector<std::uint64_t> unanswered;
  for (const ShardEvent& event : events) {
    if (event.kind == ShardEvent::Kind::kSnapshotCopied) {
      finish(snapshots_.on_bucket_copied(event.token));
      continue;
    }
    ServedRequest* const found = current_.open.find(event.token);
    if (found == nullptr) continue;
    ServedRequest& open = *found;
    if (event.kind == ShardEvent::Kind::kAnswered) {
      on_answered(event, open);
    } else if (event.kind == ShardEvent::Kind::kCancelled) {
      if (open.answer.num_elements() > 0) buffers_->give_back(std::move(open.answer));
    } else {
      on_processed(event, open);
      if (open.push.wants_values) {
        unanswered.push_back(event.token);
        continue;
      }
    }
    current_.open.erase(event.token);
  }
  send_consumed(unanswered);
  // The control thread is notified after the answers, since workers wait for those.
  if (std::exchange(has_ended_steps_, false)) results_.notify();
}

// Reports that pushes were processed: their values may have to wait for other workers, but the
// credit of a push is returned at once.
void RequestService::send_consumed(const std::vector<std::uint64_t>& tokens) {
  for (const std::uint64_t token : tokens) {
    ServedRequest* const found = current_.open.find(token);
    if (found == nullptr) continue;  // the request was answered by now
    ServedRequest& open = *found;
    open.frames.clear();
    open.aligned = {};
    const WorkerSession* const session = sessions_.find_worker(open.worker);
    if (session == nullptr || open.is_consumed) continue;
    open.is_consumed = true;
    wire::ConsumedT consumed;
    consumed.bucket = open.bucket;
    consumed.sequence = open.push.sequence;
    socket_.send(envelope(session->peer, make_message(consumed)));
  }
}

void RequestService::on_processed(const ShardEvent& event, ServedRequest& open) {
  const bool was_applied = event.kind == ShardEvent::Kind::kApplied;
  open.processed = Clock::now();
  // A duplicate of a push is not counted: the push had an event for the first time it came.
  if (event.is_duplicate) return;
  open.is_dropped = !was_applied;
  if (record_ != nullptr) record_->processed(event, open.incarnation, open.push);
  if (!open.push.ends_step) return;
  const bool is_sync = consistency_of(current_.variables->declaration) == Consistency::kSync;
  if (was_applied) add_statistics(open);
  if (was_applied && is_sync) add_totals(event, open);
  results_.add_step({open.worker, open.incarnation, open.push, was_applied, event.version});
  has_ended_steps_ = true;
}

void RequestService::add_statistics(const ServedRequest& open) {
  if (sessions_.find(open.worker, open.incarnation) == nullptr) return;
  std::vector<float> values;
  if (open.push.has_state) values = floats_of(wire::bytes_in(open.frames.back()));
  snapshots_.statistics().add(open.worker, open.push.sequence, open.push.samples,
                              std::move(values));
}

void RequestService::add_totals(const ShardEvent& event, const ServedRequest& open) {
  StepTotals& totals = current_.totals[event.bucket];
  if (totals.version != event.version) {
    totals = StepTotals{.version = event.version, .sums = {}, .last_received = open.received};
  }
  totals.last_received = std::max(totals.last_received, open.received);
  wire::StepSumsT& sums = totals.sums;
  sums.loss += open.push.loss;
  sums.metric += open.push.metric;
  sums.samples += open.push.samples;
  sums.num_bad += open.push.num_bad;
  sums.stops.resize(std::max(sums.stops.size(), open.push.stops.size()));
  for (std::size_t i = 0; i < open.push.stops.size(); ++i) sums.stops[i] += open.push.stops[i];
}

std::chrono::microseconds RequestService::peers_wait(const ServedRequest& open,
                                                     const StepTotals* totals) const {
  Clock::duration waited = Clock::now() - open.processed;
  if (totals != nullptr) {
    waited = totals->last_received - open.received;
  } else if (consistency_of(current_.variables->declaration) == Consistency::kQuorum) {
    waited = open.processed - open.received;
  }
  return std::clamp(std::chrono::duration_cast<std::chrono::microseconds>(waited),
                    std::chrono::microseconds(0), kLongestPeersWait);
}

void RequestService::on_answered(const ShardEvent& event, ServedRequest& open) {
  if (record_ != nullptr) record_->answered(event, open.incarnation);
  const WorkerSession* const session = sessions_.find(open.worker, open.incarnation);
  if (session == nullptr) {
    if (open.answer.num_elements() > 0) buffers_->give_back(std::move(open.answer));
    return;
  }
  wire::ValuesT values;
  values.bucket = open.bucket;
  values.version = event.version;
  values.sequence = open.push.sequence;
  // `in_segment` is as when the request came: a worker that has greeted again since then may have a
  // shared-memory segment only now.
  values.in_segment = open.answer.num_elements() == 0;
  values.staleness = event.staleness;
  values.dropped = open.is_dropped;
  if (open.push.ends_step) {
    const auto found = current_.totals.find(event.bucket);
    const bool is_of_step =
        found != current_.totals.end() && found->second.version == event.version;
    const StepTotals* const totals = is_of_step ? &found->second : nullptr;
    if (totals != nullptr) values.report = std::make_unique<wire::StepSumsT>(totals->sums);
    values.peers_wait_us = static_cast<std::uint32_t>(peers_wait(open, totals).count());
  }
  const bool in_frame = !values.in_segment;
  wire::Envelope message = envelope(session->peer, make_message(std::move(values)));
  if (in_frame) {
    const std::span<const std::byte> bytes = open.answer.bytes();
    message.frames.push_back(wire::borrowed_frame(
        bytes, [buffers = buffers_, buffer = std::move(open.answer)]() mutable {
          buffers->give_back(std::move(buffer));
        }));
  }
  socket_.send(std::move(message));
}

void RequestService::finish(std::shared_ptr<ServedSnapshot> snapshot) {
  if (snapshot == nullptr) return;
  if (record_ != nullptr) record_->flush();
  results_.add_snapshot(std::move(snapshot));
}

}  // namespace syncopate::ps
