// Until training begins there is nothing to save: a request to stop ends the process at once,
// wherever it waits, at the rendezvous or for a slow disk. (Signals are blocked from the start, for
// the threads that start meanwhile.)
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "models/base/file_descriptor.h"
#include "worker/stop_signal.h"

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

}  // namespace syncopate
