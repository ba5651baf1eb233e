#include "models/backend/cpu/lanes.h"

#include <immintrin.h>
#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/base/denormals.h"
#include "models/base/errors.h"

// Of libgomp, which oneDNN links. Its header is GCC's own and clang's tools do not find it.
extern "C" void omp_set_num_threads(int count);

namespace syncopate {
namespace {

// About 30 to 50 us: longer than the gap between two kernels of one step, shorter than a step, so
// that lanes of a busy model never sleep and those of an idle one do.
constexpr int kSpins = 1500;

// Waits until `value` is no longer `old`.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    _mm_pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

LanePool::LanePool(int count) : count_(count) {
  if (count < 1 || count > 1024) {
    throw UsageError("--threads " + std::to_string(count) + ": expected 1 to 1024 lanes");
  }
  threads_.reserve(static_cast<std::size_t>(count - 1));
  try {
    for (int lane = 1; lane < count; ++lane) {
      threads_.emplace_back([this, lane](const std::stop_token& stop) { lane_main(lane, stop); });
    }
  } catch (const std::exception& error) {
    end_lanes();  // no destructor runs, and those that did start would be joined for ever
    throw UsageError("--threads " + std::to_string(count) + ": the system started only " +
                     std::to_string(threads_.size() + 1) + " (" + error.what() + "); try fewer");
  }
}

LanePool::~LanePool() { end_lanes(); }

void LanePool::end_lanes() {
  for (std::jthread& thread : threads_) thread.request_stop();
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void LanePool::lane_main(int lane, const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), ("lane-" + std::to_string(lane)).c_str());
  // New threads ignore what main set: each has to say it.
  omp_set_num_threads(1);
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop.stop_requested()) return;
    run_lane(lane);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
  }
}

void LanePool::run_lane(int lane) noexcept {
  const FlushDenormals flush;
  try {
    (*task_)(lane);
  } catch (const LaneReleased&) {
    // Another lane failed and has left its reason.
  } catch (...) {
    {
      const std::lock_guard lock(failure_mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
    failed_.store(true, std::memory_order_release);
    phase_.fetch_add(1, std::memory_order_acq_rel);
    phase_.notify_all();
  }
}

void LanePool::run(const std::function<void(int)>& task) {
  omp_set_num_threads(1);
  task_ = &task;
  const auto others = static_cast<std::uint32_t>(count_ - 1);
  if (others > 0) {
    running_.store(others, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  run_lane(0);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_while(running_, left);
  }
  if (failed_.load(std::memory_order_acquire)) {
    failed_.store(false, std::memory_order_relaxed);
    arrived_.store(0, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

void LanePool::barrier() {
  if (count_ == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (failed_.load(std::memory_order_acquire)) throw LaneReleased{};
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(count_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_acq_rel);
    phase_.notify_all();
  } else {
    wait_while(phase_, phase);
  }
  if (failed_.load(std::memory_order_acquire)) throw LaneReleased{};
}

Share share_of(std::int64_t count, int part, int parts, std::int64_t granule) {
  const std::int64_t granules = (count + granule - 1) / granule;
  const auto border = [&](int i) { return std::min(count, granules * i / parts * granule); };
  return {border(part), border(part + 1)};
}

}  // namespace syncopate
