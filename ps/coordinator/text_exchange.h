// Exchanges texts between all workers, in numbered rounds. A round is answered, with the texts of
// all workers, when every present worker has sent its text.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ps/coordinator/job.h"

namespace syncopate::ps {

// The part of the coordinator that exchanges texts between workers. Used by one thread at a time.
class TextExchange {
 public:
  explicit TextExchange(Job& job) : job_(job) {}

  void on_exchange(int worker, const wire::ExchangeT& exchange);
  // Answers the rounds that are complete. Also called when a worker is lost, since this can
  // complete a round.
  void advance();
  // Drops all texts, because the workers repeat the exchanges since the snapshot. Called when the
  // servers have rolled back.
  void clear();

 private:
  using Texts = std::map<int, std::vector<std::uint8_t>>;  // by worker
  void answer(int worker, std::uint64_t round, const Texts& texts);

  Job& job_;
  std::map<std::uint64_t, Texts> open_;
  // The texts of the answered rounds, by round number. A synchronous job keeps only the last round.
  // In other jobs, a worker that is admitted later begins with the first round, and gets its
  // answers from this map.
  std::map<std::uint64_t, Texts> answered_;
};

}  // namespace syncopate::ps
