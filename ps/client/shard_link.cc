#include "ps/client/shard_link.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/log.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

// A Hello to a shard without an answer is repeated after this time.
constexpr milliseconds kRepeatHello(1000);
// The longest wait for a shard's answer, as a multiple of the first one.
constexpr int kLongestAnswerTimeout = 10;
// The time to connect to a shard, in peer timeouts. It is longer than for the control connection,
// which notices the death of a server: the data thread of a shard that is alive may be busy.
constexpr int kDataTimeouts = 3;
// A push that the shard drops more often than this is invalid for it; resending would never end.
constexpr int kMostResends = 5;
// A probe of more pushes than this could be longer than a header may be.
constexpr std::size_t kMostProbed = 10'000;

}  // namespace

ShardLink::ShardLink(wire::Context& context, ReadableSet& readable, ClientState& state,
                     const ClientOptions& options, int shard)
    : context_(context),
      readable_(readable),
      state_(state),
      options_(options),
      shard_(shard),
      sums_(sum_kernels(detect_isa())),
      answer_timeout_(options.answer_timeout),
      reconnect_("this worker",
                 std::max(options.server_timeout, kDataTimeouts * options.peer_timeout),
                 options.asked_to_stop) {
  const auto& buckets = options.declaration.buckets;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (buckets[b].owner() == shard) answered_[static_cast<int>(b)] = 0;
  }
}

std::string ShardLink::name() const {
  if (address_.endpoint.empty()) return fmt::format("server {}", shard_);
  return fmt::format("server {} at {}", shard_, address_.endpoint);
}

void ShardLink::set_address(const wire::ServerAddressT& address, std::uint32_t worker_incarnation) {
  worker_incarnation_ = worker_incarnation;
  if (address.incarnation == 0) {
    if (socket_ != nullptr) disconnect();
    close();
    address_.incarnation = 0;
    return;
  }
  const bool is_same = socket_ != nullptr && address.endpoint == address_.endpoint &&
                       address.incarnation == address_.incarnation;
  address_ = address;
  if (is_same) return;
  if (socket_ != nullptr) disconnect();
  connect();
}

void ShardLink::connect() {
  close();
  socket_ = wire::Socket::connect(context_, parse_endpoint(address_.endpoint, name()),
                                  {.nonce = options_.nonce});
  registration_.emplace(readable_, socket_->descriptors(), static_cast<std::uint32_t>(shard_));
  reconnect_.begin();
}

void ShardLink::close() {
  registration_.reset();
  socket_.reset();
}

void ShardLink::send_hello() {
  wire::DataHelloT hello;
  hello.shard = shard_;
  hello.worker = options_.index;
  hello.incarnation = worker_incarnation_;
  // The Hello names the last push that the shard has answered for every bucket; the buckets in
  // `ahead` are one push further. A restored shard must not take later pushes for known: they will
  // be sent again, or are still to be computed.
  const auto least =
      std::ranges::min_element(answered_, {}, [](const auto& bucket) { return bucket.second; });
  hello.sequence = least == answered_.end() ? 0 : least->second;
  for (const auto& [bucket, sequence] : answered_) {
    if (sequence > hello.sequence) hello.ahead.push_back(bucket);
  }
  hello.fingerprint = address_.fingerprint;
  hello.segment = options_.segment;
  hello.call = connections_;
  socket_->send(envelope("", make_message(std::move(hello))));
  next_hello_ = Deadline::after(kRepeatHello);
  start_answer_timeout();
}

void ShardLink::start_answer_timeout() {
  if (!answers_until_) answers_until_ = Deadline::after(answer_timeout_);
}

void ShardLink::disconnect() {
  is_welcome_ = false;
  next_hello_.reset();
  answers_until_.reset();
  requests_.end_connection();
  reconnect_.begin();
}

void ShardLink::send(ShardRequest request) {
  requests_.add(std::move(request));
  send_sendable();
}

void ShardLink::roll_back(std::uint64_t sequence) {
  for (auto& [bucket, answered] : answered_) answered = sequence;
  close();
  address_.incarnation = 0;
  requests_.clear();
  disconnect();
}

void ShardLink::send_sendable() {
  std::vector<const ShardRequest*> pulls;
  for (OpenRequest* open : requests_.take_sendable()) {
    if (open->request.kind == ShardRequest::Kind::kPull) {
      pulls.push_back(&open->request);
    } else {
      send_request(open->request);
    }
  }
  if (!pulls.empty()) send_pulls(pulls);
}

void ShardLink::send_message(wire::MessageT message) {
  message.session = session_;
  socket_->send(envelope("", message));
}

void ShardLink::send_request(ShardRequest& request) {
  std::size_t first = 0;
  if (request.kind == ShardRequest::Kind::kPush) {
    wire::PushT& push = *request.message.body.AsPush();
    push.in_segment = uses_segment_ && push.codec == wire::Codec::F32;
    if (push.in_segment) first = 1;
  }
  request.message.session = session_;
  wire::Envelope message = envelope("", request.message);
  if (request.kind == ShardRequest::Kind::kWrite) {
    // A write's frames are copied, under the mutex: after a failure the caller may be gone, and the
    // memory of its values with it. Credit bounds the memory of the copies.
    const std::lock_guard lock(state_.mutex);
    if (state_.failure) return;
    for (const auto bytes : request.payload) message.frames.push_back(wire::copied_frame(bytes));
  } else {
    for (std::size_t i = first; i < request.payload.size(); ++i) {
      // A push's frames are borrowed: the bytes outlive the client and do not change before the
      // answer, which shows that the push has arrived.
      message.frames.push_back(wire::borrowed_frame(request.payload[i], {}));
    }
  }
  socket_->send(std::move(message));
}

void ShardLink::send_pulls(const std::vector<const ShardRequest*>& requests) {
  wire::PullT pull;
  for (const ShardRequest* request : requests) pull.buckets.push_back(request->bucket);
  pull.in_segment = uses_segment_;
  send_message(make_message(std::move(pull)));
}

void ShardLink::process_events() {
  if (socket_ == nullptr) return;
  // Each function is called until it returns nothing, not in turns: each of its calls into ZeroMQ
  // makes system calls even if nothing has happened.
  while (const auto event = socket_->link_event()) {
    if (*event == wire::LinkEvent::kConnected) {
      ++connections_;
      send_hello();
    } else {
      disconnect();
    }
  }
  while (const auto received = socket_->receive()) on_message(*received);
  if (socket_->queued_bytes() > 0) socket_->flush();
  send_sendable();
}

void ShardLink::on_message(const wire::Received& message) {
  answers_until_.reset();
  const wire::BodyUnion& body = message.header.body;
  switch (body.type) {
    case wire::Body::DataWelcome:
      return on_welcome(*body.AsDataWelcome());
    case wire::Body::Values:
      return on_values(*body.AsValues(), message);
    case wire::Body::Consumed: {
      OpenRequest* const open =
          requests_.find_sent({ShardRequest::Kind::kPush, body.AsConsumed()->bucket});
      if (open != nullptr) requests_.return_credit(*open);
      return;
    }
    case wire::Body::ProbeAnswer:
      return on_probe_answer(*body.AsProbeAnswer());
    case wire::Body::Written:
      return on_copy_answer(ShardRequest::Kind::kWrite,
                            body.AsWritten()->state ? -1 : body.AsWritten()->bucket, message);
    case wire::Body::SnapshotValues: {
      const wire::SnapshotValuesT& copy = *body.AsSnapshotValues();
      const int bucket = copy.state ? -1 : copy.bucket;
      const OpenRequest* const open =
          requests_.find_sent({ShardRequest::Kind::kReadSnapshot, bucket});
      if (open == nullptr || open->request.message.body.AsReadSnapshot()->snapshot != copy.snapshot)
        return;
      return on_copy_answer(ShardRequest::Kind::kReadSnapshot, bucket, message);
    }
    case wire::Body::Refused:
      return state_.fail(
          fmt::format("{}: {}", name(), body.AsRefused()->line),
          body.AsRefused()->is_usage_error ? FailureKind::kUsage : FailureKind::kPeer);
    default:
      return;  // not a message from a shard to a worker
  }
}

void ShardLink::on_probe_answer(const wire::ProbeAnswerT& answer) {
  // The probe that is answered was sent after its pushes on the same connection, so the shard has
  // received an unknown push and dropped it. The last one is put in front of the queue first, so
  // that they are sent again in their order.
  for (auto unknown = answer.unknown.rbegin(); unknown != answer.unknown.rend(); ++unknown) {
    OpenRequest* const open = requests_.find_sent({ShardRequest::Kind::kPush, unknown->bucket()});
    if (open == nullptr) continue;
    const wire::PushT& push = *open->request.message.body.AsPush();
    if (push.sequence != unknown->sequence()) continue;
    if (++open->times_unknown > kMostResends) {
      return state_.fail(
          fmt::format("{} dropped this worker's push of bucket {} ({}, {} bytes) {} times; see the "
                      "log of that server, and start all tasks with the same program",
                      name(), unknown->bucket(), wire::EnumNameCodec(push.codec),
                      open->request.payload.front().size(), open->times_unknown));
    }
    requests_.send_again(*open);
  }
}

void ShardLink::on_welcome(const wire::DataWelcomeT& welcome) {
  if (is_welcome_) return;
  is_welcome_ = true;
  next_hello_.reset();
  reconnect_.end();
  uses_segment_ = welcome.uses_segment;
  shard_incarnation_ = welcome.incarnation;
  session_ = welcome.session;
  requests_.begin_connection(welcome.credit_bytes, uses_segment_);
  if (options_.requires_segment && !uses_segment_) {
    state_.fail(fmt::format("--transport shm: {} cannot map this worker's memory; it "
                            "runs on another machine "
                            "or in another network namespace: choose --transport auto",
                            name()),
                FailureKind::kUsage);
    return;
  }
  if (!was_welcome_) {
    was_welcome_ = true;
    {
      const std::lock_guard lock(state_.mutex);
      ++state_.shards_met;
      state_.traffic.shards_in_segment += uses_segment_ ? 1 : 0;
    }
    state_.changed.notify_all();
  } else {
    log(LogLevel::kInfo, name() + " is back");
  }
  send_sendable();
}

void ShardLink::on_values(const wire::ValuesT& header, const wire::Envelope& envelope) {
  using Kind = ShardRequest::Kind;
  const RequestQueue::Key key{header.sequence == 0 ? Kind::kPull : Kind::kPush, header.bucket};
  OpenRequest* const open = requests_.find_sent(key);
  if (open == nullptr) return;  // the request was answered before
  const wire::PushT* const push =
      key.first == Kind::kPush ? open->request.message.body.AsPush() : nullptr;
  if (push != nullptr && push->sequence != header.sequence) return;
  const wire::BucketPlace& place =
      options_.declaration.buckets[static_cast<std::size_t>(header.bucket)];
  const std::int64_t bytes = value_bytes(header.bucket, options_.declaration);
  if (!header.in_segment) {
    if (envelope.frames.size() != 2 || !std::cmp_equal(envelope.frames[1].size(), bytes)) {
      return state_.fail(
          fmt::format("{} sent values of bucket {} of a wrong "
                      "length; start all tasks with the same "
                      "program",
                      name(), header.bucket));
    }
    float* const values = options_.values.data() + place.begin();
    if (options_.declaration.bf16_values) {
      sums_.from_bf16(values, envelope.frames[1].data(), size_of(place));
    } else {
      std::memcpy(values, envelope.frames[1].data(), static_cast<std::size_t>(bytes));
    }
  }
  if (push != nullptr) answered_[header.bucket] = header.sequence;
  bool is_waited_for = false;
  {
    const std::lock_guard lock(state_.mutex);
    if (push != nullptr) {
      for (const wire::SampleRange& batch : push->batches) {
        std::erase(state_.leased_batches, from_wire(batch));
      }
    }
    ClientState::Bucket& bucket = state_.buckets[static_cast<std::size_t>(header.bucket)];
    bucket.version = header.version;
    bucket.shard_incarnation = shard_incarnation_;
    bucket.awaited = false;
    if (header.report) state_.sums = *header.report;
    state_.traffic.peers_wait_seconds += 1e-6 * static_cast<double>(header.peers_wait_us);
    if (push != nullptr) {
      state_.drops.add(header.sequence, header.dropped, state_.buckets.size());
      state_.traffic.dropped = state_.drops.totals();
    }
    state_.traffic.bytes_pulled +=
        header.in_segment ? size_of(place) * static_cast<std::int64_t>(sizeof(float)) : bytes;
    is_waited_for = bucket.waiting > 0 || header.report;
  }
  answer_timeout_ = options_.answer_timeout;
  requests_.finish(key);
  if (is_waited_for) state_.changed.notify_all();
}

void ShardLink::on_copy_answer(ShardRequest::Kind kind, int bucket,
                               const wire::Envelope& envelope) {
  const OpenRequest* const open = requests_.find_sent({kind, bucket});
  if (open == nullptr) return;
  const std::vector<std::span<std::byte>>& answer = open->request.answer;
  const bool is_state = kind == ShardRequest::Kind::kReadSnapshot && bucket < 0;
  if (is_state) {
    const std::span<const std::byte> bytes = envelope.frames.size() > 1
                                                 ? wire::bytes_in(envelope.frames[1])
                                                 : std::span<const std::byte>();
    const std::lock_guard lock(state_.mutex);
    state_.statistics.resize(bytes.size() / sizeof(float));
    // A model without running statistics has no bytes to copy, and the frame no address.
    const std::size_t size = state_.statistics.size() * sizeof(float);
    if (size > 0) std::memcpy(state_.statistics.data(), bytes.data(), size);
  } else {
    // After a failure the waiting caller may be gone, and with it the memory for the copy.
    std::unique_lock lock(state_.mutex);
    if (state_.failure) return;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      if (i + 1 >= envelope.frames.size() || envelope.frames[i + 1].size() != answer[i].size()) {
        lock.unlock();
        return state_.fail(
            fmt::format("{} sent a copy of bucket {} of a wrong "
                        "length; start all tasks with the same "
                        "program",
                        name(), bucket));
      }
      std::memcpy(answer[i].data(), envelope.frames[i + 1].data(), answer[i].size());
    }
  }
  {
    const std::lock_guard lock(state_.mutex);
    --state_.requests_open;
  }
  answer_timeout_ = options_.answer_timeout;
  requests_.finish({kind, bucket});
  state_.changed.notify_all();
}

// A name that cannot be looked up would look like a server that is not running.
void ShardLink::fail_disconnected(const std::string& reason) {
  if (address_.endpoint.empty()) return state_.fail(reason);
  const Endpoint endpoint = parse_endpoint(address_.endpoint, name());
  const std::string problem = look_up_problem(endpoint);
  if (problem.empty()) return state_.fail(reason);
  state_.fail(fmt::format("{}: the host name '{}' cannot be looked up ({}); start that server with "
                          "--host and a name or an address that this machine can look up",
                          name(), endpoint.host, problem),
              FailureKind::kUsage);
}

void ShardLink::check_timeouts() {
  if (const auto reason = reconnect_.expired(name(), options_.declaration.writes_checkpoints)) {
    return fail_disconnected(*reason);
  }
  // A new connection either brings answers or shows that the shard is away.
  if (answers_until_ && answers_until_->passed()) {
    if (is_welcome_) {
      log(LogLevel::kWarning, fmt::format("{} has sent nothing for {}; connecting again", name(),
                                          in_seconds(answers_until_->timeout())));
    }
    // Over a slow link the answer of the shard may only be late, behind earlier messages.
    answer_timeout_ =
        std::min(2 * answer_timeout_, kLongestAnswerTimeout * options_.answer_timeout);
    disconnect();
    return connect();
  }
  if (next_hello_ && next_hello_->passed()) send_hello();
  if (!is_welcome_) return;
  const std::vector<OpenRequest*> overdue = requests_.take_overdue();
  if (overdue.empty()) return;
  // A probe shows whether the shard is reachable; for a push, also whether the push arrived.
  wire::ProbeT probe;
  for (OpenRequest* open : overdue) {
    ShardRequest& request = open->request;
    if (request.kind == ShardRequest::Kind::kPush) {
      if (probe.pushes.size() == kMostProbed) continue;
      probe.pushes.emplace_back(request.bucket, request.message.body.AsPush()->sequence);
    } else if (request.kind == ShardRequest::Kind::kPull) {
      send_pulls({&request});
    } else {
      send_request(request);
    }
  }
  send_message(make_message(std::move(probe)));
  start_answer_timeout();
}

void ShardLink::extend_deadlines(std::chrono::nanoseconds suspended) {
  reconnect_.extend(suspended);
  if (answers_until_) answers_until_ = Deadline::after(answer_timeout_);
}

}  // namespace syncopate::ps
