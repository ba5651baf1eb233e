// Exchange of texts between all workers, in numbered rounds: a round is answered when every present
// worker has sent its text.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ps/coordinator/job.h"

namespace syncopate::ps {

// Used by one thread at a time.
class TextExchange {
 public:
  explicit TextExchange(Job& job) : job_(job) {}

  void on_exchange(int worker, const wire::ExchangeT& exchange);
  // Answers complete rounds; the loss of a worker can complete one.
  void advance();
  // The servers have rolled back: the workers repeat the rounds since the snapshot.
  void clear();

 private:
  using Texts = std::map<int, std::vector<std::uint8_t>>;  // by worker
  void answer(int worker, std::uint64_t round, const Texts& texts);

  Job& job_;
  std::map<std::uint64_t, Texts> open_;
  // Answered rounds. A worker that is admitted later repeats the first ones.
  std::map<std::uint64_t, Texts> answered_;
};

}  // namespace syncopate::ps
