#include "models/base/thread_team.h"

#include <fmt/format.h>
#include <immintrin.h>
#include <pthread.h>

#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// 1500 spins take 30 to 50 us. That is longer than the gap between two kernels of a step and
// shorter than a step, so the threads of a team never sleep within a step but sleep when idle.
constexpr int kSpins = 1500;

// Waits, by spinning before sleeping, until `value` is no longer `old`.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    _mm_pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadTeam::ThreadTeam(int count, std::string name) : count_(count), name_(std::move(name)) {
  check(count >= 1, "a team has at least one member");
  threads_.reserve(static_cast<std::size_t>(count - 1));
  try {
    for (int member = 1; member < count; ++member) {
      threads_.emplace_back(
          [this, member](const std::stop_token& stop) { member_main(member, stop); });
    }
  } catch (const std::exception& error) {
    // Ends the threads: ~ThreadTeam does not run after a throw, and joining would never return.
    end_threads();
    throw UsageError(fmt::format("the system started only {} of {} threads \"{}\" ({}); try fewer",
                                 threads_.size() + 1, count, name_, error.what()));
  }
}

ThreadTeam::~ThreadTeam() { end_threads(); }

void ThreadTeam::end_threads() {
  for (std::jthread& thread : threads_) thread.request_stop();
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void ThreadTeam::member_main(int member, const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), fmt::format("{}-{}", name_, member).c_str());
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop.stop_requested()) return;
    run_member(member);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
  }
}

void ThreadTeam::run_member(int member) noexcept {
  try {
    (*task_)(member);
  } catch (const Released&) {
    // Released ends this thread's task because another thread of the team threw an exception, which
    // run() rethrows.
  } catch (...) {
    {
      const std::lock_guard lock(failure_mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
    if (on_failure_ != nullptr && *on_failure_) (*on_failure_)(std::current_exception());
    failed_.store(true, std::memory_order_release);
    phase_.fetch_add(1, std::memory_order_acq_rel);
    phase_.notify_all();
  }
}

void ThreadTeam::run(const std::function<void(int)>& task,
                     const std::function<void(std::exception_ptr)>& on_failure) {
  task_ = &task;
  on_failure_ = &on_failure;
  const auto others = static_cast<std::uint32_t>(count_ - 1);
  if (others > 0) {
    running_.store(others, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  run_member(0);
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

void ThreadTeam::barrier() {
  if (count_ == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (failed_.load(std::memory_order_acquire)) throw Released{};
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(count_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_acq_rel);
    phase_.notify_all();
  } else {
    wait_while(phase_, phase);
  }
  if (failed_.load(std::memory_order_acquire)) throw Released{};
}

}  // namespace syncopate
