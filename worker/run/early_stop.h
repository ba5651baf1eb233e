// Until training begins there is nothing to save: a request to stop ends the process at once,
// wherever it waits, at the rendezvous or for a slow disk. A run that would have gone on from a
// checkpoint has lost nothing, and may do so another time. (Signals are blocked from the start, for
// the threads that start meanwhile.)
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "models/base/file_descriptor.h"
#include "worker/run/train_options.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// While it lives, it alone reads `signals`.
class EarlyStop {
 public:
  // end_process: called from a thread of its own with the signal's name.
  EarlyStop(StopSignal& signals, std::function<void(std::string_view)> end_process);
  EarlyStop(const EarlyStop&) = delete;
  EarlyStop& operator=(const EarlyStop&) = delete;
  ~EarlyStop();

 private:
  FileDescriptor ended_;
  std::jthread thread_;
};

struct EarlyEnd {
  std::string line;   // for people
  int exit_code = 1;  // 75: --resume has a checkpoint to go on from
};
// What is to be said of a run that `signal` has ended before it trained, and its exit code.
EarlyEnd early_end(const TrainOptions& options, std::string_view signal);

}  // namespace syncopate
