// Command lines of jobs of --strategy local-sgd.
#pragma once

#include <iterator>
#include <sstream>
#include <string>

#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"

namespace syncopate::test {

inline Arguments words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

inline Arguments local_sgd_replicas(int count, const std::string& more = "") {
  return as_words("train --strategy local-sgd --share-devices --replicas", std::to_string(count),
                  words_of(more));
}
inline Arguments local_sgd_tasks(int count, const std::string& more = "") {
  return as_words("launch --workers", std::to_string(count),
                  "-- train --strategy local-sgd --share-devices", words_of(more));
}

// Returns the command of one of two tasks, which no launcher watches.
inline Arguments lone_task(std::size_t rank, const Port& port, const std::string& more) {
  return syncopate_command(
      as_words("train --strategy local-sgd --model mlp --data synthetic:1x8x8:4:256 --threads 1 "
               "--no-progress --eval-every 0 --world-size 2 --rank",
               std::to_string(rank), "--rendezvous", port.endpoint(), "--rendezvous-timeout 5",
               words_of(more)));
}

}  // namespace syncopate::test
