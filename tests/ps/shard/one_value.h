// OneValue is a shard of one value under plain SGD with learning rate 1, so that the value is minus
// the sum of the applied gradients. Its events are logged as text.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ps/shard/shard.h"

namespace syncopate::ps {

inline constexpr ConsistencyOptions kAsync{.consistency = Consistency::kAsync};

ShardTime shard_time(double seconds);

class OneValue {
 public:
  // Makes the shard; workers 0, 1, ... join as incarnation 1.
  OneValue(const ConsistencyOptions& consistency, int workers, float value = 0.0F,
           ValuesFormat format = ValuesFormat::kF32);

  struct Push {
    float gradient = 1.0F;
    float learning_rate = 1.0F;
    std::uint32_t incarnation = 1;
    bool wants_values = true;
    double seconds = 0.0;  // when it arrives
    std::int64_t samples = 1;
  };
  // After its request, each of these functions makes the shard do all work that is due.
  void push(WorkerId worker, std::uint64_t sequence, std::uint64_t version, const Push& push);
  void push(WorkerId worker, std::uint64_t sequence, std::uint64_t version) {
    push(worker, sequence, version, Push{});
  }
  void read(WorkerId worker, std::uint32_t incarnation = 1);
  void work();

  Shard& shard() { return shard_; }
  float value() const { return shard_.view(0).values[0]; }
  std::uint64_t version() const { return shard_.view(0).version; }
  // Returns the shard's events since the last call, such as "applied 0:3 v7 s2, answered 0:3 v7
  // =-6": worker:sequence (0 for a read), version, staleness unless 0, and the value in the answer.
  std::string log();

 private:
  Shard shard_;
  std::deque<float> gradients_;
  std::deque<std::vector<float>> answers_;  // indexed by request token
  std::string log_;
};

}  // namespace syncopate::ps
