// What rank 0 collects from all tasks, itself included, before it answers all of them: the texts of
// exchange() and the word that somebody is done. No sockets.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "ps/net/connection.h"

namespace syncopate {

// Thread-safe.
class Hub {
 public:
  explicit Hub(int world_size)
      : texts_(static_cast<std::size_t>(world_size)),
        leaving_(static_cast<std::size_t>(world_size)) {}

  // A kText or a kLeaving from a task; returns what every task is to get now.
  std::vector<Frame> take(int from, Frame frame);

  // Whose text, or word to be done, has not come: indices of tasks.
  std::vector<int> without_text() const;
  std::vector<int> not_leaving() const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_, by index. A fast task may be one round ahead.
  std::vector<std::deque<std::string>> texts_;
  std::vector<bool> leaving_;
};

}  // namespace syncopate
