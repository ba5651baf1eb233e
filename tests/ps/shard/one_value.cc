#include "tests/ps/shard/one_value.h"

#include <cmath>
#include <sstream>
#include <utility>

#include "ps/shard/stale_gradients.h"

namespace syncopate::ps {
namespace {

Tensor tensor_of(float value) {
  const Tensor tensor = make_host_tensor({1}, DType::kF32);
  tensor.f32()[0] = value;
  return tensor;
}

const char* word(ShardEvent::Kind kind) {
  switch (kind) {
    case ShardEvent::Kind::kApplied:
      return "applied";
    case ShardEvent::Kind::kDropped:
      return "dropped";
    case ShardEvent::Kind::kAnswered:
      return "answered";
    case ShardEvent::Kind::kCancelled:
      return "forgotten";
    case ShardEvent::Kind::kSnapshotCopied:
      return "snapshot";
  }
  return "?";
}

}  // namespace

OneValue::OneValue(const ConsistencyOptions& consistency, int workers, float value,
                   ValuesFormat format)
    : shard_(ArenaLayout({{.name = "value", .shape = {1}}}), {{0, 1}},
             make_shard_optimizer({}, consistency, workers), consistency, tensor_of(value),
             format) {
  for (WorkerId worker = 0; worker < workers; ++worker) shard_.join(worker, 1, 0);
}

ShardTime shard_time(double seconds) { return ShardTime(std::llround(seconds * 1e9)); }

void OneValue::push(WorkerId worker, std::uint64_t sequence, std::uint64_t version,
                    const Push& push) {
  const float& gradient = gradients_.emplace_back(push.gradient);
  const std::size_t token = answers_.size();
  std::vector<float>& answer = answers_.emplace_back(push.wants_values ? 1 : 0);
  const bool accepted = shard_.push({.id = {worker, push.incarnation, sequence},
                                     .bucket = 0,
                                     .version = version,
                                     .learning_rate = push.learning_rate,
                                     .arrived = shard_time(push.seconds),
                                     .samples = push.samples,
                                     .gradient = {.codec = Codec::kF32,
                                                  .num_elements = 1,
                                                  .bytes = std::as_bytes(std::span(&gradient, 1))},
                                     .values = answer,
                                     .token = token});
  if (!accepted) log_ += log_.empty() ? "refused" : ", refused";
  work();
}

void OneValue::read(WorkerId worker, std::uint32_t incarnation) {
  const std::size_t token = answers_.size();
  std::vector<float>& answer = answers_.emplace_back(1);
  if (!shard_.read({worker, incarnation, 0, answer, token})) {
    log_ += log_.empty() ? "refused" : ", refused";
  }
  work();
}

void OneValue::work() {
  std::vector<ShardEvent> events;
  shard_.work(0, events);
  std::ostringstream text;
  for (const ShardEvent& event : events) {
    if (!log_.empty() || text.tellp() > 0) text << ", ";
    text << word(event.kind);
    if (event.kind != ShardEvent::Kind::kSnapshotCopied) {
      text << " " << event.worker << ":" << event.sequence;
    }
    if (event.kind != ShardEvent::Kind::kDropped && event.kind != ShardEvent::Kind::kCancelled) {
      text << " v" << event.version;
    }
    if (event.staleness > 0) text << " s" << event.staleness;
    if (event.kind == ShardEvent::Kind::kAnswered) text << " =" << answers_[event.token][0];
  }
  log_ += text.str();
}

std::string OneValue::log() { return std::exchange(log_, ""); }

}  // namespace syncopate::ps
