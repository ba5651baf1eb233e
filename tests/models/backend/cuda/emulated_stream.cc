#include "tests/models/backend/cuda/emulated_stream.h"

#include <utility>

namespace syncopate::cuda {

RecordedWork*& recorded_work() noexcept {
  thread_local RecordedWork* work = nullptr;
  return work;
}

void do_or_record(std::function<void()> work) {
  if (recorded_work() != nullptr) {
    recorded_work()->push_back(std::move(work));
  } else {
    work();
  }
}

}  // namespace syncopate::cuda
