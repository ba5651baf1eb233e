// Client: pull and push, first values written, copies of a cut read.
#include <algorithm>
#include <ranges>

#include "ps/client/client_state.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

}  // namespace

void Client::write_variables(std::span<const float> values,
                             std::span<const std::span<const float>> slots, std::int64_t step) {
  State& state = *state_;
  std::vector<State::Ask> asks;
  for (int b = 0; b < state.num_buckets(); ++b) {
    wire::WriteT write;
    write.bucket = b;
    write.version = static_cast<std::uint64_t>(step) + 1;
    write.with_slots = !slots.empty();
    ShardRequest request{.kind = ShardRequest::Kind::kWrite, .bucket = b};
    request.message = wire::make_message(std::move(write));
    request.payload.push_back(bytes_of(state.part(values, b)));
    for (const auto slot : slots) request.payload.push_back(bytes_of(state.part(slot, b)));
    for (const auto frame : request.payload) {
      request.credit_bytes += static_cast<std::int64_t>(frame.size());
    }
    asks.push_back({state.place(b).owner(), std::move(request)});
  }
  std::unique_lock lock(state.board.mutex);
  state.ask_and_wait(lock, std::move(asks));
}

void Client::write_state(std::span<const float> values) {
  State& state = *state_;
  wire::WriteT write;
  write.bucket = -1;
  write.state = true;
  ShardRequest request{.kind = ShardRequest::Kind::kWrite, .bucket = -1};
  request.message = wire::make_message(std::move(write));
  request.payload.push_back(bytes_of(values));
  std::vector<State::Ask> asks;
  asks.push_back({0, std::move(request)});
  std::unique_lock lock(state.board.mutex);
  state.ask_and_wait(lock, std::move(asks));
}

void Client::pull() {
  State& state = *state_;
  std::vector<State::Ask> asks;
  {
    std::unique_lock lock(state.board.mutex);
    state.board.require_current(lock);
    for (int b = 0; b < state.num_buckets(); ++b) {
      ClientBoard::Bucket& bucket = state.board.buckets[static_cast<std::size_t>(b)];
      if (bucket.awaited) continue;
      bucket.awaited = true;
      asks.push_back({state.place(b).owner(), state.pull_of(b), state.board.roll_backs_known});
    }
  }
  state.ask(std::move(asks));
}

void Client::wait_values(int bucket) {
  std::unique_lock lock(state_->board.mutex);
  state_->board.wait_values(lock, state_->board.buckets[static_cast<std::size_t>(bucket)]);
}

void Client::begin_step(const StepInfo& info) {
  state_->info = info;
  state_->sequence.fetch_add(1, std::memory_order_relaxed);
}

void Client::push(int bucket) {
  State& state = *state_;
  const EncodedGradient encoded = state.encoders[static_cast<std::size_t>(bucket)].encode(
      state.part(state.options.gradients, bucket));
  const StepInfo& info = state.info;
  wire::PushT push;
  push.bucket = bucket;
  push.sequence = state.sequence.load(std::memory_order_relaxed);
  push.learning_rate = info.learning_rate;
  push.codec = static_cast<wire::Codec>(encoded.codec);
  push.wants_values = true;
  ShardRequest request{.kind = ShardRequest::Kind::kPush, .bucket = bucket};
  request.payload.push_back(encoded.bytes);
  if (bucket == state.last_bucket_of_shard_0) {
    push.ends_step = true;
    push.batch = std::make_unique<wire::SampleRange>(to_wire(info.batch));
    push.lanes = info.lanes;
    push.loss = info.loss;
    push.correct = info.correct;
    push.samples = info.samples;
    push.stops = to_wire(info.stops);
    push.has_state = !info.state.empty();
    if (push.has_state) {
      // Statistics move on with the next forward pass, before the push may have left.
      state.state.assign(info.state.begin(), info.state.end());
      request.payload.push_back(bytes_of(state.state));
    }
  }
  const wire::BucketPlace& place = state.place(bucket);
  request.credit_bytes =
      std::max((place.end() - place.begin()) * static_cast<std::int64_t>(sizeof(float)),
               static_cast<std::int64_t>(encoded.bytes.size()));
  int roll_backs = 0;
  {
    std::unique_lock lock(state.board.mutex);
    state.board.throw_if_failed();
    state.board.require_current(lock);
    ClientBoard::Bucket& at = state.board.buckets[static_cast<std::size_t>(bucket)];
    push.version = at.version;
    push.shard_incarnation = at.shard_incarnation;
    at.awaited = true;
    roll_backs = state.board.roll_backs_known;
    if (push.ends_step) state.board.sums.reset();
    state.board.traffic.bytes_pushed += static_cast<std::int64_t>(encoded.bytes.size());
  }
  request.message = wire::make_message(std::move(push));
  std::vector<State::Ask> asks;
  asks.push_back({place.owner(), std::move(request), roll_backs});
  state.ask(std::move(asks));
}

wire::StepSumsT Client::finish_step() {
  State& state = *state_;
  state.step.fetch_add(1, std::memory_order_relaxed);
  if (consistency_of(state.options.declaration) == Consistency::kSync) {
    std::unique_lock lock(state.board.mutex);
    state.board.wait(lock, [&] { return state.board.sums.has_value(); });
    return *state.board.sums;
  }
  wire::StepSumsT own;
  own.loss = state.info.loss;
  own.correct = state.info.correct;
  own.samples = state.info.samples;
  own.stops = to_wire(state.info.stops);
  return own;
}

void Client::flush() {
  std::unique_lock lock(state_->board.mutex);
  // The last one first: when that has its answer most others have theirs.
  for (ClientBoard::Bucket& bucket : state_->board.buckets | std::views::reverse) {
    state_->board.wait_values(lock, bucket);
  }
}

void Client::read_cut(std::uint64_t cut, std::span<float> values,
                      std::span<const std::span<float>> slots) {
  State& state = *state_;
  std::vector<State::Ask> asks;
  for (int b = 0; b < state.num_buckets(); ++b) {
    wire::ReadCutT read;
    read.cut = cut;
    read.bucket = b;
    read.with_slots = !slots.empty();
    ShardRequest request{.kind = ShardRequest::Kind::kReadCut, .bucket = b};
    request.message = wire::make_message(std::move(read));
    request.answer.push_back(std::as_writable_bytes(state.part(values, b)));
    for (const auto slot : slots) {
      request.answer.push_back(std::as_writable_bytes(state.part(slot, b)));
    }
    for (const auto frame : request.answer) {
      request.credit_bytes += static_cast<std::int64_t>(frame.size());
    }
    asks.push_back({state.place(b).owner(), std::move(request)});
  }
  std::unique_lock lock(state.board.mutex);
  state.ask_and_wait(lock, std::move(asks), cut);
}

std::vector<float> Client::read_cut_state(std::uint64_t cut) {
  State& state = *state_;
  wire::ReadCutT read;
  read.cut = cut;
  read.bucket = -1;
  read.state = true;
  ShardRequest request{.kind = ShardRequest::Kind::kReadCut, .bucket = -1};
  request.message = wire::make_message(std::move(read));
  std::vector<State::Ask> asks;
  asks.push_back({0, std::move(request)});
  std::unique_lock lock(state.board.mutex);
  state.ask_and_wait(lock, std::move(asks), cut);
  return std::exchange(state.board.state, {});
}

}  // namespace syncopate::ps
