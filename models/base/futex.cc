#include "models/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace syncopate {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// Without FUTEX_PRIVATE_FLAG: the word may lie in memory shared with another process.
void futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* patience) noexcept {
  syscall(SYS_futex, &word, operation, value, patience, nullptr, 0);
}

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds patience) noexcept {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  const timespec time{.tv_sec = patience.count() / kPerSecond,
                      .tv_nsec = patience.count() % kPerSecond};
  futex(word, FUTEX_WAIT, expected, &time);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace syncopate
