#include "ps/client/client.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "models/base/deadline.h"
#include "ps/client/client_state.h"
#include "ps/client/io_thread.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

// How long Client::leave() waits for the confirmation of shard 0.
constexpr std::chrono::milliseconds kLeaveTimeout(2000);
constexpr std::int64_t kFirstState = -1;  // `samples` of the Write of the first state

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

template <typename Span>
std::int64_t total_size(const std::vector<Span>& frames) {
  std::int64_t bytes = 0;
  for (const auto frame : frames) bytes += static_cast<std::int64_t>(frame.size());
  return bytes;
}

}  // namespace

struct Client::State {
  explicit State(const ClientOptions& given) : options(given) {
    const std::vector<wire::BucketPlace>& buckets = options.declaration.buckets;
    shared.buckets.resize(buckets.size());
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      encoders.emplace_back(options.compression, size_of(buckets[b]));
      if (buckets[b].owner() == 0) last_bucket_of_shard_0 = static_cast<int>(b);
    }
    io.emplace(options, shared);  // starts the I/O thread
  }

  const wire::BucketPlace& place(int bucket) const {
    return options.declaration.buckets[static_cast<std::size_t>(bucket)];
  }
  int num_buckets() const { return static_cast<int>(options.declaration.buckets.size()); }
  template <typename T>
  std::span<T> part(std::span<T> block, int bucket) const {
    return block.subspan(static_cast<std::size_t>(place(bucket).begin()),
                         static_cast<std::size_t>(size_of(place(bucket))));
  }

  // Sends requests to the shards; returns when all are answered. `snapshot`: the one that the
  // requests read. Throws SnapshotWithdrawn when this worker is no longer assigned to that
  // snapshot.
  void send_and_wait(std::unique_lock<std::mutex>& lock, std::vector<OutgoingRequest> requests,
                     std::optional<std::uint64_t> snapshot = std::nullopt);

  const ClientOptions options;
  ClientState shared;
  // The buffers of pushes, used by the training thread. Declared before `io`: pushes borrow these
  // bytes, and ZeroMQ may still send them for a moment while its context is destroyed.
  std::vector<GradientEncoder> encoders;
  StepInfo info;
  std::vector<float> statistics;  // the running statistics that the client is sending
  int last_bucket_of_shard_0 = 0;

  std::optional<IoThread> io;  // declared last: its thread uses the other members
};

void Client::State::send_and_wait(std::unique_lock<std::mutex>& lock,
                                  std::vector<OutgoingRequest> requests,
                                  std::optional<std::uint64_t> snapshot) {
  shared.require_current(lock);
  for (OutgoingRequest& request : requests) request.roll_backs = shared.roll_backs_known;
  shared.requests_open = static_cast<int>(requests.size());
  lock.unlock();
  io->send(std::move(requests));
  lock.lock();
  const auto is_withdrawn = [&] {
    return snapshot && *snapshot != wire::kLiveSnapshot && shared.assigned_snapshot != *snapshot;
  };
  shared.wait(lock, [&] { return shared.requests_open == 0 || is_withdrawn(); });
  if (is_withdrawn()) throw SnapshotWithdrawn();
}

Client::Client(const ClientOptions& options) {
  await_host(options.rendezvous, Deadline::after(options.rendezvous_timeout));
  state_ = std::make_unique<State>(options);
  ClientState& shared = state_->shared;
  std::unique_lock lock(shared.mutex);
  // The join does not use ClientState::wait(), which throws RolledBack: a roll-back during the join
  // does not concern this worker, which has sent no requests.
  shared.changed.wait(lock, [&] {
    const bool has_joined = shared.welcome && shared.shards_met == options.servers;
    return has_joined || shared.failure.has_value();
  });
  shared.throw_if_failed();
}

Client::~Client() = default;

bool Client::initialises() const {
  const std::lock_guard lock(state_->shared.mutex);
  return state_->shared.welcome->initialises;
}

std::uint32_t Client::incarnation() const {
  const std::lock_guard lock(state_->shared.mutex);
  return state_->shared.welcome->incarnation;
}

void Client::write_variables(std::span<const float> values,
                             std::span<const std::span<const float>> slots, std::int64_t pushes) {
  State& state = *state_;
  std::vector<OutgoingRequest> requests;
  for (int b = 0; b < state.num_buckets(); ++b) {
    wire::WriteT write;
    write.bucket = b;
    write.version = static_cast<std::uint64_t>(pushes) + 1;
    write.with_slots = !slots.empty();
    ShardRequest request{.kind = ShardRequest::Kind::kWrite, .bucket = b};
    request.message = wire::make_message(std::move(write));
    request.payload.push_back(bytes_of(state.part(values, b)));
    for (const auto slot : slots) request.payload.push_back(bytes_of(state.part(slot, b)));
    request.credit_bytes = total_size(request.payload);
    requests.push_back({state.place(b).owner(), std::move(request)});
  }
  std::unique_lock lock(state.shared.mutex);
  state.send_and_wait(lock, std::move(requests));
}

void Client::write_state(std::span<const float> values, const StateShare& share) {
  wire::WriteT write;
  write.bucket = -1;
  write.state = true;
  write.version = share.average;
  write.samples = share.samples;
  ShardRequest request{.kind = ShardRequest::Kind::kWrite, .bucket = -1};
  request.message = wire::make_message(std::move(write));
  request.payload.push_back(bytes_of(values));
  std::vector<OutgoingRequest> requests;
  requests.push_back({0, std::move(request)});
  std::unique_lock lock(state_->shared.mutex);
  state_->send_and_wait(lock, std::move(requests));
}

void Client::write_state(std::span<const float> values) {
  write_state(values, {.samples = kFirstState});
}

void Client::initialised(const RunPosition& start) {
  wire::InitialisedT message;
  set_position(message, start);
  state_->io->send_control(wire::make_message(std::move(message)));
}

RunPosition Client::wait_start() {
  if (!initialises()) state_->io->send_control(wire::make_message(wire::ReadyT{}));
  ClientState& shared = state_->shared;
  std::unique_lock lock(shared.mutex);
  shared.changed.wait(lock, [&] {
    return shared.failure.has_value() || (shared.start.has_value() && !shared.is_rolling_back);
  });
  shared.throw_if_failed();
  shared.roll_backs_known = shared.roll_backs;  // no request from before the roll-back is open
  return *shared.start;
}

void Client::resume() {
  ClientState& shared = state_->shared;
  const std::lock_guard lock(shared.mutex);
  shared.roll_backs_known = shared.roll_backs;
  shared.requests_open = 0;
  shared.wants_lease = false;
}

void Client::pull() {
  State& state = *state_;
  std::vector<OutgoingRequest> requests;
  {
    std::unique_lock lock(state.shared.mutex);
    state.shared.require_current(lock);
    for (int b = 0; b < state.num_buckets(); ++b) {
      ClientState::Bucket& bucket = state.shared.buckets[static_cast<std::size_t>(b)];
      if (bucket.awaited) continue;
      bucket.awaited = true;
      requests.push_back({state.place(b).owner(), pull_request(b, state.options.declaration),
                          state.shared.roll_backs_known});
    }
  }
  state.io->send(std::move(requests));
}

void Client::wait_values(int bucket) {
  ClientState& shared = state_->shared;
  std::unique_lock lock(shared.mutex);
  shared.wait_values(lock, shared.buckets[static_cast<std::size_t>(bucket)]);
}

void Client::begin_step(const StepInfo& info) {
  state_->info = info;
  state_->shared.sequence.fetch_add(1, std::memory_order_relaxed);
}

void Client::push(int bucket) {
  State& state = *state_;
  ClientState& shared = state.shared;
  const EncodedGradient encoded = state.encoders[static_cast<std::size_t>(bucket)].encode(
      state.part(state.options.gradients, bucket));
  const StepInfo& info = state.info;
  const wire::BucketPlace& place = state.place(bucket);
  wire::PushT push;
  push.bucket = bucket;
  push.sequence = shared.sequence.load(std::memory_order_relaxed);
  push.learning_rate = info.learning_rate;
  push.codec = static_cast<wire::Codec>(encoded.codec);
  push.wants_values = true;
  push.samples = info.samples;
  OutgoingRequest outgoing{.shard = place.owner(),
                           .request = {.kind = ShardRequest::Kind::kPush, .bucket = bucket}};
  ShardRequest& request = outgoing.request;
  request.payload.push_back(encoded.bytes);
  if (bucket == state.last_bucket_of_shard_0) {
    push.ends_step = true;
    push.batches = to_wire(info.batches);
    push.inner_rates = info.inner_rates;
    push.lanes = info.lanes;
    push.loss = info.loss;
    push.metric = info.metric;
    push.num_bad = info.num_bad;
    push.bad_of_batches = info.bad_of_batches;
    push.stops = to_wire(info.stops);
    push.has_state = !info.state.empty();
    if (push.has_state) {
      // Copies the statistics: the next forward pass changes them, perhaps before the push is sent.
      state.statistics.assign(info.state.begin(), info.state.end());
      request.payload.push_back(bytes_of(state.statistics));
    }
  }
  request.credit_bytes = std::max(value_bytes(bucket, state.options.declaration),
                                  static_cast<std::int64_t>(encoded.bytes.size()));
  {
    std::unique_lock lock(shared.mutex);
    shared.throw_if_failed();
    shared.require_current(lock);
    ClientState::Bucket& at = shared.buckets[static_cast<std::size_t>(bucket)];
    push.version = at.version;
    push.shard_incarnation = at.shard_incarnation;
    at.awaited = true;
    outgoing.roll_backs = shared.roll_backs_known;
    if (push.ends_step) shared.sums.reset();
    shared.traffic.bytes_pushed += static_cast<std::int64_t>(encoded.bytes.size());
  }
  request.message = wire::make_message(std::move(push));
  state.io->send(std::move(outgoing));
}

wire::StepSumsT Client::finish_step() {
  ClientState& shared = state_->shared;
  shared.step.fetch_add(1, std::memory_order_relaxed);
  if (consistency_of(state_->options.declaration) == Consistency::kSync) {
    std::unique_lock lock(shared.mutex);
    shared.wait(lock, [&] { return shared.sums.has_value(); });
    return *shared.sums;
  }
  const StepInfo& info = state_->info;
  wire::StepSumsT own;
  own.loss = info.loss;
  own.metric = info.metric;
  own.samples = info.samples;
  own.stops = to_wire(info.stops);
  return own;
}

void Client::flush() {
  ClientState& shared = state_->shared;
  std::unique_lock lock(shared.mutex);
  // flush() waits for the last bucket first: when its answer has arrived, most others have, too.
  for (ClientState::Bucket& bucket : shared.buckets | std::views::reverse) {
    shared.wait_values(lock, bucket);
  }
}

std::optional<SampleRange> Client::next_lease() {
  ClientState& shared = state_->shared;
  std::unique_lock lock(shared.mutex);
  shared.require_current(lock);
  if (!shared.has_lease() && !shared.wants_lease) {
    shared.wants_lease = true;
    lock.unlock();
    state_->io->send_control(make_lease_request());
    lock.lock();
  }
  shared.wait(lock, [&] { return shared.has_lease() || shared.all_granted; });
  shared.all_granted = false;
  if (!shared.has_lease()) return SampleRange{};
  shared.wants_lease = false;
  return shared.take_lease();
}

wire::JobStatusT Client::status() const {
  const std::lock_guard lock(state_->shared.mutex);
  return state_->shared.status;
}

std::optional<wire::AssignmentT> Client::assignment() {
  ClientState& shared = state_->shared;
  std::unique_lock lock(shared.mutex);
  shared.throw_if_failed();
  shared.require_current(lock);
  if (shared.assignments.empty()) return std::nullopt;
  wire::AssignmentT next = shared.assignments.front();
  shared.assignments.pop_front();
  return next;
}

std::optional<wire::AssignmentT> Client::wait_assignment() {
  ClientState& shared = state_->shared;
  {
    std::unique_lock lock(shared.mutex);
    shared.wait(lock, [&] { return !shared.assignments.empty() || shared.finished; });
  }
  return assignment();
}

void Client::read_snapshot(std::uint64_t snapshot, std::span<float> values,
                           std::span<const std::span<float>> slots) {
  State& state = *state_;
  std::vector<OutgoingRequest> requests;
  for (int b = 0; b < state.num_buckets(); ++b) {
    wire::ReadSnapshotT read;
    read.snapshot = snapshot;
    read.bucket = b;
    read.with_slots = !slots.empty();
    ShardRequest request{.kind = ShardRequest::Kind::kReadSnapshot, .bucket = b};
    request.message = wire::make_message(std::move(read));
    request.answer.push_back(std::as_writable_bytes(state.part(values, b)));
    for (const auto slot : slots) {
      request.answer.push_back(std::as_writable_bytes(state.part(slot, b)));
    }
    request.credit_bytes = total_size(request.answer);
    requests.push_back({state.place(b).owner(), std::move(request)});
  }
  std::unique_lock lock(state.shared.mutex);
  state.send_and_wait(lock, std::move(requests), snapshot);
}

std::vector<float> Client::read_snapshot_state(std::uint64_t snapshot) {
  wire::ReadSnapshotT read;
  read.snapshot = snapshot;
  read.bucket = -1;
  read.state = true;
  ShardRequest request{.kind = ShardRequest::Kind::kReadSnapshot, .bucket = -1};
  request.message = wire::make_message(std::move(read));
  std::vector<OutgoingRequest> requests;
  requests.push_back({0, std::move(request)});
  std::unique_lock lock(state_->shared.mutex);
  state_->send_and_wait(lock, std::move(requests), snapshot);
  return std::exchange(state_->shared.statistics, {});
}

void Client::complete_assignment(std::uint64_t snapshot, std::vector<double> rules) {
  ClientState& shared = state_->shared;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.assigned_snapshot == snapshot) {
      shared.is_assignment_done = true;
      shared.rules = rules;
    }
  }
  wire::AssignmentDoneT done;
  done.snapshot = snapshot;
  done.rules = std::move(rules);
  state_->io->send_control(wire::make_message(std::move(done)));
}

void Client::request_stop(StopKind kind) {
  wire::StopRequestT request;
  request.kind = to_wire(kind);
  state_->io->send_control(wire::make_message(std::move(request)));
}

std::vector<std::string> Client::exchange(std::string_view mine) {
  ClientState& shared = state_->shared;
  wire::ExchangeT message;
  message.text.assign(mine.begin(), mine.end());
  {
    std::unique_lock lock(shared.mutex);
    shared.require_current(lock);
    message.round = ++shared.round;
    shared.open_exchange = message;
  }
  const std::uint64_t round = message.round;
  state_->io->send_control(wire::make_message(std::move(message)));
  std::unique_lock lock(shared.mutex);
  shared.wait(lock, [&] { return shared.exchanged.contains(round); });
  shared.open_exchange.reset();
  auto texts = std::move(shared.exchanged.at(round));
  shared.exchanged.erase(round);
  return texts;
}

std::uint64_t Client::exchanges() const {
  const std::lock_guard lock(state_->shared.mutex);
  return state_->shared.round;
}

void Client::report_step(std::int64_t step) noexcept {
  state_->shared.step.store(step, std::memory_order_relaxed);
}

void Client::leave() {
  ClientState& shared = state_->shared;
  {
    std::unique_lock lock(shared.mutex);
    shared.require_current(lock);
  }
  state_->io->send_control(wire::make_message(wire::LeavingT{}));
  std::unique_lock lock(shared.mutex);
  // Shard 0 may end before its confirmation of Leaving arrives. Shard 0 has then received Leaving,
  // or the job is over for all tasks: neither is an error.
  shared.changed.wait_for(lock, kLeaveTimeout,
                          [&] { return shared.finished || shared.is_stale(); });
  if (!shared.finished) shared.require_current(lock);
}

void Client::fail(std::string_view reason, bool ends_job) noexcept {
  try {
    wire::FailingT failing;
    failing.reason = reason;
    failing.ends_job = ends_job;
    state_->io->send_control(wire::make_message(std::move(failing)));
  } catch (...) {
    return;  // out of memory: other tasks notice the missing heartbeats
  }
}

void Client::abort(std::string_view reason) noexcept {
  try {
    state_->shared.fail(std::string(reason));
  } catch (...) {
    return;
  }
}

Client::Traffic Client::traffic() const {
  const std::lock_guard lock(state_->shared.mutex);
  return state_->shared.traffic;
}

}  // namespace syncopate::ps
