// Workers give each other texts: by round, answered when the last of those that take part has given
// its own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ps/coordinator/job.h"

namespace syncopate::ps {

// One thread at a time.
class TextExchange {
 public:
  explicit TextExchange(Job& job) : job_(job) {}

  void hear(int worker, const wire::ExchangeT& exchange);
  // Answers rounds that are complete, also because somebody is gone.
  void advance();
  // The servers went back to a cut, perhaps a second time: rounds since then are begun again.
  void clear();

 private:
  using Texts = std::map<int, std::vector<std::uint8_t>>;  // by worker
  void answer(int worker, std::uint64_t round, const Texts& texts);

  Job& job_;
  std::map<std::uint64_t, Texts> open_;
  // Rounds that are over. Where workers come later they ask for the first ones again.
  std::map<std::uint64_t, Texts> answered_;
};

}  // namespace syncopate::ps
