// What is asked of a shard and what it tells: plain data. The words of ps/shard/shard.h.
#pragma once

#include <cstdint>
#include <span>

#include "models/tensor/parameter_arena.h"
#include "ps/shard/consistency.h"
#include "ps/shard/gradient_codec.h"

namespace syncopate::ps {

// Which push of which worker: applied once, however often it is sent. A worker that starts anew is
// a new incarnation; sequences ascend within one, one per step, gaps allowed.
struct PushId {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;
};

struct PushRequest {
  PushId id;
  BucketId bucket = 0;
  std::uint64_t version = 0;  // of the values it was computed from; 0: of no version of ours
  float learning_rate = 0.0F;
  EncodedGradient gradient;  // in use until kApplied, kDropped or kForgotten
  // The worker's next values, [bucket] f32, are copied here as soon as the rule lets it read; in
  // use until kAnswered or kForgotten. Empty: it reads the shard's own memory, and no answer comes.
  std::span<float> values;
  std::uint64_t token = 0;  // the caller's word for it, in events
};

struct ReadRequest {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  BucketId bucket = 0;
  std::span<float> values;  // [bucket] f32, in use until kAnswered or kForgotten
  std::uint64_t token = 0;
};

// A push ends in kApplied or kDropped and then, if values were asked for, in kAnswered or
// kForgotten; or in kForgotten alone. A read ends in kAnswered or kForgotten.
struct ShardEvent {
  enum class Kind : std::uint8_t {
    kApplied,    // the push is in the values; its gradient is no longer used
    kDropped,    // late, or a duplicate: it will not be applied; its gradient is no longer used
    kAnswered,   // the values asked for are there
    kForgotten,  // nobody is left to be answered; no memory of the request is used any longer
    kCutCopied,  // the bucket's part of a cut is copied, which may have been given up (token: its
                 // number)
  };
  Kind kind = Kind::kApplied;
  BucketId bucket = 0;
  WorkerId worker = 0;
  std::uint64_t sequence = 0;  // of the push; 0: of a read
  std::uint64_t token = 0;
  std::uint64_t version = 0;    // kApplied: after it; kAnswered: of the values; kCutCopied: ditto
  std::uint64_t staleness = 0;  // kApplied
  bool is_duplicate = false;    // kDropped: says nothing of what became of the push itself
  // Among the bucket's events, from 0. Where several threads work, what one of them was given may
  // come to the others' knowledge later than what happened after it.
  std::uint64_t order = 0;
};

// How far a worker has got: every push up to `sequence`.
struct CutEntry {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool operator==(const CutEntry&) const = default;
};

}  // namespace syncopate::ps
