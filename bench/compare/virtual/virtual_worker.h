// What a virtual worker without a common step has and is about to do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/compare/virtual/job_lines.h"
#include "bench/compare/virtual/outgoing_gradient.h"
#include "ps/coordinator/ledger.h"

namespace syncopate::bench {

struct VirtualWorker {
  std::uint32_t incarnation = 0;  // 0: it has never been there
  bool is_alive = false;
  bool is_resting = false;     // the shard does not wait for it
  std::uint64_t sequence = 0;  // of its last push
  std::uint64_t heard = 0;     // of its last push that was applied or dropped

  std::vector<float> values;            // [arena total], what it was handed
  std::vector<std::uint64_t> versions;  // of them, by bucket
  std::vector<float> state;             // running statistics
  std::optional<OutgoingGradient> gradient;

  // Its step.
  std::optional<ps::SampleRange> lease;
  double learning_rate = 0.0;
  Scores scores;
  VirtualTime begun{0};         // computing
  VirtualTime computed{0};      // or asked for values that no push preceded
  VirtualTime sent{0};          // the last part was there
  VirtualTime answered{0};      // the last part of the answer left
  std::vector<int> unanswered;  // buckets, by server
  int parts_missing = 0;        // of the answer

  VirtualTime idle_since{0};  // has values and no batch
  enum class Doing : std::uint8_t { kNothing, kComputing, kExchanging, kIdle };
  Doing doing = Doing::kNothing;
};

}  // namespace syncopate::bench
