#include "tests/models/backend/cuda/emulated_journal.h"

#include <mutex>
#include <utility>

namespace syncopate::cuda {
namespace {

// The journal keeps only this number of latest calls, as most programs never take the calls out.
constexpr std::size_t kMostCalls = 10'000;

struct Journal {
  std::mutex mutex;
  std::vector<EmulatedCall> calls;
};

Journal& journal() {
  static Journal the_one;  // exists once per process, like CUDA's functions
  return the_one;
}

}  // namespace

void note_call(EmulatedCall call) {
  Journal& all = journal();
  const std::lock_guard lock(all.mutex);
  if (all.calls.size() >= kMostCalls) all.calls.clear();
  all.calls.push_back(std::move(call));
}

std::vector<EmulatedCall> take_calls() {
  Journal& all = journal();
  const std::lock_guard lock(all.mutex);
  return std::exchange(all.calls, {});
}

std::atomic<bool>& emulated_device_is_stuck() {
  static std::atomic<bool> is_stuck{false};
  return is_stuck;
}

}  // namespace syncopate::cuda
