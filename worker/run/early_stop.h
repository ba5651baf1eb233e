// Ends the process at once when a request to stop arrives before training begins, when there is
// nothing to save yet: at the rendezvous, or while it waits for a slow disk. A run that would have
// resumed a checkpoint can be started again. (The signals are blocked from the start of the
// process.)
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "models/base/file_descriptor.h"
#include "worker/run/train_options.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// While an object lives, no other code reads `signals`.
class EarlyStop {
 public:
  // end_process is called on a thread of this object with the name of the signal.
  EarlyStop(StopSignal& signals, std::function<void(std::string_view)> end_process);
  EarlyStop(const EarlyStop&) = delete;
  EarlyStop& operator=(const EarlyStop&) = delete;
  ~EarlyStop();

 private:
  FileDescriptor ended_;
  std::jthread thread_;
};

struct EarlyEnd {
  std::string line;   // for the user
  int exit_code = 1;  // 75: --resume has a checkpoint
};
// Returns the message and the exit code of a run that `signal` ended before it trained.
EarlyEnd early_end(const TrainOptions& options, std::string_view signal);

}  // namespace syncopate
