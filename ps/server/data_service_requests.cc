// What workers say on the data socket: greetings, pushes, pulls, and copies written and read.
#include <algorithm>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/server/data_service.h"

namespace syncopate::ps {
namespace {

constexpr std::chrono::milliseconds kSegmentPatience(1000);

std::string name_of_worker(WorkerId worker) { return "worker " + std::to_string(worker); }

bool is_aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0;
}

std::string unfit(const std::string& what, std::size_t found, std::size_t expected) {
  return std::to_string(found) + " " + what + ", expected " + std::to_string(expected);
}

std::size_t bytes_in(const wire::BucketPlace& place) {
  return static_cast<std::size_t>(place.end() - place.begin()) * sizeof(float);
}

}  // namespace

void DataService::hear(wire::Envelope& envelope) {
  const auto message = wire::decode(envelope.frames.front().bytes());
  if (!message) return;
  const wire::BodyUnion& body = message->body;
  switch (body.type) {
    case wire::Body::DataHello:
      return greet(envelope.peer, *body.AsDataHello());
    case wire::Body::Push:
      return push(envelope.peer, envelope, *body.AsPush());
    case wire::Body::Pull:
      return pull(envelope.peer, *body.AsPull());
    case wire::Body::Probe:
      return probe(envelope.peer, *body.AsProbe());
    case wire::Body::Write:
      return write(envelope.peer, envelope, *body.AsWrite());
    case wire::Body::ReadCut:
      return read_cut(envelope.peer, *body.AsReadCut());
    default:
      return;  // nothing a worker says to a shard
  }
}

void DataService::refuse(const std::string& peer, const std::string& line, bool is_usage_error) {
  wire::RefusedT refused;
  refused.line = line;
  refused.is_usage_error = is_usage_error;
  socket_->send(envelope(peer, make_message(std::move(refused))));
}

std::int64_t DataService::credit() const {
  return std::max<std::int64_t>(1, options_.credit_bytes / std::max(1, options_.workers));
}

void DataService::greet(const std::string& peer, const wire::DataHelloT& hello) {
  if (hello.nonce != options_.nonce) return refuse(peer, "it serves another job", false);
  // Not declared yet, or started anew: the worker greets again.
  if (served_ == nullptr) return;
  if (hello.worker < 0 || hello.worker >= options_.workers) return;
  if (hello.fingerprint != 0 && hello.fingerprint != served_->fingerprint) {
    return refuse(peer,
                  "it serves another network than " + name_of_worker(hello.worker) +
                      " trains; start all tasks with the same program and flags",
                  true);
  }
  // Its greeting may have been under way for longer than the job waited for it.
  if (hello.incarnation <= forgotten_[hello.worker]) {
    return refuse(peer,
                  name_of_worker(hello.worker) +
                      " was silent for too long and was taken for dead; the job went on without it",
                  false);
  }
  const auto known = sessions_.find(hello.worker);
  if (known != sessions_.end() && known->second.incarnation > hello.incarnation) {
    return refuse(peer, name_of_worker(hello.worker) + " was started anew meanwhile", false);
  }
  // Said through a socket that was given up since, and late: its answers would reach nobody.
  if (known != sessions_.end() && known->second.incarnation == hello.incarnation &&
      known->second.call > hello.call) {
    return;
  }
  const bool is_new = known == sessions_.end() || known->second.incarnation < hello.incarnation;
  if (is_new) end_session(hello.worker);
  Session& session = sessions_[hello.worker];
  if (is_new) {
    session.incarnation = hello.incarnation;
    statistics_.forget(hello.worker);
    std::vector<BucketId> ahead;
    for (const int bucket : hello.ahead) {
      if (bucket < 0 || static_cast<std::size_t>(bucket) >= served_->shard_bucket.size()) continue;
      ahead.push_back(served_->shard_bucket[static_cast<std::size_t>(bucket)]);
    }
    served_->shard->join(hello.worker, hello.incarnation, hello.sequence, ahead);
    schedule_all();
  }
  session.call = hello.call;
  // One peer per worker and one worker per peer, also where it calls under another name.
  std::erase_if(workers_by_peer_, [&](const auto& entry) { return entry.second == hello.worker; });
  session.peer = peer;
  workers_by_peer_[peer] = hello.worker;
  if (session.segment == nullptr && options_.uses_segments && !hello.segment.empty()) {
    std::int64_t total = 0;
    for (const wire::BucketPlace& place : served_->declaration.buckets) {
      total = std::max(total, place.end());
    }
    try {
      if (auto mapped = map_segment(hello.segment, options_.nonce, total,
                                    Deadline::after(kSegmentPatience))) {
        session.segment = std::make_shared<const MappedSegment>(std::move(*mapped));
      }
    } catch (const Error& error) {
      log(LogLevel::kWarning,
          name_of_worker(hello.worker) + ": its shared memory is not used: " + error.what());
    }
  }
  wire::DataWelcomeT welcome;
  welcome.incarnation = incarnation_;
  welcome.credit_bytes = credit();
  welcome.uses_segment = session.segment != nullptr;
  socket_->send(envelope(peer, make_message(welcome)));
}

DataService::Session* DataService::session_of(const std::string& peer) {
  const auto worker = workers_by_peer_.find(peer);
  return worker == workers_by_peer_.end() ? nullptr : &sessions_.at(worker->second);
}

void DataService::drop(const std::string& peer, const char* message, int bucket,
                       const std::string& trouble) {
  ++unfit_messages_;
  if (std::exchange(session_of(peer)->is_complained_of, true)) return;
  const std::string of = bucket < 0 ? "" : " of bucket " + std::to_string(bucket);
  log(LogLevel::kWarning, "dropped a " + std::string(message) + of + " by " +
                              name_of_worker(workers_by_peer_.at(peer)) + ": " + trouble +
                              "; are both the same program?");
}

std::size_t DataService::state_bytes() const {
  return static_cast<std::size_t>(served_->declaration.state_elements) * sizeof(float);
}

int DataService::own_bucket(const std::string& peer, const char* message, int bucket) {
  const std::vector<int>& own = served_->shard_bucket;
  const bool is_known = bucket >= 0 && std::cmp_less(bucket, own.size());
  const int mine = is_known ? own[static_cast<std::size_t>(bucket)] : -1;
  if (mine < 0) drop(peer, message, bucket, "this shard has no such bucket");
  return mine;
}

std::span<float> DataService::answer_window(Session& session, Open& open, int shard_bucket) {
  const Bucket range = served_->shard->buckets()[static_cast<std::size_t>(shard_bucket)];
  const std::int64_t count = range.end - range.begin;
  if (session.segment != nullptr) {
    open.segment = session.segment;
    return session.segment->values.f32().subspan(static_cast<std::size_t>(range.begin),
                                                 static_cast<std::size_t>(count));
  }
  open.answer = buffers_->take(count);
  return open.answer.f32();
}

void DataService::push(const std::string& peer, wire::Envelope& envelope,
                       const wire::PushT& header) {
  Session* session = session_of(peer);
  if (session == nullptr) return;
  const int mine = own_bucket(peer, "push", header.bucket);
  if (mine < 0) return;
  const Bucket range = served_->shard->buckets()[static_cast<std::size_t>(mine)];
  const std::size_t count = static_cast<std::size_t>(range.end - range.begin);
  const bool in_segment = header.in_segment;
  // A worker may write to its segment at any time: what is to be checked has to come in a frame.
  if (in_segment && header.codec != wire::Codec::F32) {
    return drop(peer, "push", header.bucket, "it is compressed, in shared memory");
  }
  if (in_segment && session->segment == nullptr) {
    return drop(peer, "push", header.bucket, "its shared memory is not seen from here");
  }
  const std::size_t frames = 1 + (in_segment ? 0 : 1) + (header.has_state ? 1 : 0);
  if (envelope.frames.size() != frames) {
    return drop(peer, "push", header.bucket, unfit("frames", envelope.frames.size(), frames));
  }
  const std::size_t last_bytes = envelope.frames.back().bytes().size();
  if (header.has_state && last_bytes != state_bytes()) {
    return drop(peer, "push", header.bucket,
                unfit("bytes of running statistics", last_bytes, state_bytes()));
  }

  const std::uint64_t token = next_token_++;
  Open& open = open_[token];
  open.worker = workers_by_peer_.at(peer);
  open.incarnation = session->incarnation;
  open.bucket = header.bucket;
  open.push = header;
  open.heard = Clock::now();
  open.frames = std::move(envelope.frames);
  PushRequest request{.id = {open.worker, session->incarnation, header.sequence},
                      .bucket = mine,
                      .version = header.shard_incarnation == incarnation_ ? header.version : 0,
                      .learning_rate = header.learning_rate,
                      .token = token};
  request.gradient.codec = static_cast<Codec>(header.codec);
  request.gradient.num_elements = static_cast<std::int64_t>(count);
  if (in_segment) {
    open.segment = session->segment;
    request.gradient.bytes = std::as_bytes(
        session->segment->gradients.f32().subspan(static_cast<std::size_t>(range.begin), count));
  } else {
    request.gradient.bytes = open.frames[1].bytes();
  }
  if (!is_well_formed(request.gradient)) {
    const std::size_t size = request.gradient.bytes.size();
    open_.erase(token);
    return drop(peer, "push", header.bucket,
                std::to_string(size) + " bytes are no gradient of " + std::to_string(count) +
                    " elements in " + wire::EnumNameCodec(header.codec));
  }
  if (request.gradient.codec == Codec::kF32 && !is_aligned(request.gradient.bytes)) {
    open.aligned.resize(count);
    std::memcpy(open.aligned.data(), request.gradient.bytes.data(), count * sizeof(float));
    request.gradient.bytes = std::as_bytes(std::span(open.aligned));
  }
  if (header.wants_values) request.values = answer_window(*session, open, mine);
  if (!served_->shard->push(request)) {
    open_.erase(token);
    return;
  }
  schedule(mine, threads_for(*session));
}

void DataService::pull(const std::string& peer, const wire::PullT& header) {
  Session* session = session_of(peer);
  if (session == nullptr) return;
  // Each is answered from memory of its own.
  if (std::cmp_greater(header.buckets.size(), served_->shard_bucket.size())) {
    return drop(peer, "pull", -1,
                unfit("buckets", header.buckets.size(), served_->shard_bucket.size()));
  }
  for (const int bucket : header.buckets) {
    const int mine = own_bucket(peer, "pull", bucket);
    if (mine < 0) continue;
    const std::uint64_t token = next_token_++;
    Open& open = open_[token];
    open.worker = workers_by_peer_.at(peer);
    open.incarnation = session->incarnation;
    open.bucket = bucket;
    const ReadRequest request{.worker = open.worker,
                              .incarnation = session->incarnation,
                              .bucket = mine,
                              .values = answer_window(*session, open, mine),
                              .token = token};
    if (!served_->shard->read(request)) {
      open_.erase(token);
      continue;
    }
    schedule(mine, threads_for(*session));
  }
}

void DataService::probe(const std::string& peer, const wire::ProbeT& header) {
  Session* session = session_of(peer);
  if (session == nullptr) return;
  const WorkerId worker = workers_by_peer_.at(peer);
  wire::ProbeAnswerT answer;
  answer.bucket = header.bucket;
  answer.sequence = header.sequence;
  answer.is_known = std::ranges::any_of(open_, [&](const auto& entry) {
    const Open& open = entry.second;
    return open.worker == worker && open.incarnation == session->incarnation &&
           open.bucket == header.bucket && open.push.sequence == header.sequence;
  });
  socket_->send(envelope(peer, make_message(answer)));
}

void DataService::write(const std::string& peer, const wire::Envelope& envelope,
                        const wire::WriteT& header) {
  if (session_of(peer) == nullptr) return;
  wire::WrittenT written;
  written.bucket = header.bucket;
  written.state = header.state;
  if (header.state) {
    const std::span<const std::byte> bytes =
        envelope.frames.size() == 2 ? envelope.frames[1].bytes() : std::span<const std::byte>();
    if (envelope.frames.size() != 2 || bytes.size() != state_bytes()) {
      return drop(peer, "write", -1,
                  unfit("bytes of running statistics", bytes.size(), state_bytes()));
    }
    std::vector<float> values(bytes.size() / sizeof(float));
    // Of nothing there is no address to copy from.
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    statistics_ = RunningStatistics(std::move(values));
    socket_->send(wire::envelope(peer, make_message(written)));
    return;
  }
  const int mine = own_bucket(peer, "write", header.bucket);
  if (mine < 0) return;
  const std::size_t bytes =
      bytes_in(served_->declaration.buckets[static_cast<std::size_t>(header.bucket)]);
  const std::size_t count = 2 + (header.with_slots ? served_->shard->slots().size() : 0);
  if (envelope.frames.size() != count) {
    return drop(peer, "write", header.bucket, unfit("frames", envelope.frames.size(), count));
  }
  std::vector<std::span<const std::byte>> frames;
  for (std::size_t i = 1; i < envelope.frames.size(); ++i) {
    frames.push_back(envelope.frames[i].bytes());
    if (frames.back().size() != bytes) {
      return drop(peer, "write", header.bucket, unfit("bytes", frames.back().size(), bytes));
    }
  }
  if (served_->shard->write(mine, header.version, frames) && record_ != nullptr) {
    record_->written(mine, header.version);
  }
  socket_->send(wire::envelope(peer, make_message(written)));
}

void DataService::read_cut(const std::string& peer, const wire::ReadCutT& header) {
  if (session_of(peer) == nullptr) return;
  const bool is_live = header.cut == wire::kLiveSnapshot;
  if (!is_live && (published_ == nullptr || published_->cut != header.cut)) return;
  wire::CutValuesT answer;
  answer.cut = header.cut;
  answer.bucket = header.bucket;
  answer.with_slots = header.with_slots;
  answer.state = header.state;
  wire::Envelope message = envelope(peer, make_message(answer));
  // What is live may change as soon as somebody pushes; a copy is kept as long as it is sent.
  const auto add = [&](std::span<const std::byte> bytes) {
    message.frames.push_back(
        is_live ? wire::Frame::copy_of(bytes)
                : wire::Frame::borrow(bytes, [copy = published_]() mutable { copy.reset(); }));
  };
  if (header.state) {
    add(std::as_bytes(
        std::span(is_live ? statistics_.average({}) : published_->running_statistics)));
    socket_->send(std::move(message));
    return;
  }
  const int mine = own_bucket(peer, "request for a copy", header.bucket);
  if (mine < 0) return;
  const Shard& shard = *served_->shard;
  const auto [begin, count] = shard.window(mine);
  const auto part = [&, begin = begin, count = count](const Tensor& block) {
    return std::as_bytes(
        block.f32().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
  };
  add(part(is_live ? shard.values() : published_->state.values));
  if (header.with_slots) {
    for (std::size_t s = 0; s < shard.slots().size(); ++s) {
      add(part(is_live ? shard.slots()[s] : published_->state.slots[s]));
    }
  }
  socket_->send(std::move(message));
}

}  // namespace syncopate::ps
